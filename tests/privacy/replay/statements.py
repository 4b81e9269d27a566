"""The shop with one hostile unit, and what is asked of it: statements by what they are about."""

from tests.support import shop

HOSTILE = 2_000_000_000

ROWS = (
    shop.SCHEMA,
    shop.DATA,
    """
    ALTER TABLE customers ADD tier text, ADD height float8;
    UPDATE customers SET tier = (ARRAY['gold', 'silver', 'tin'])[1 + id % 3], height = 1.5 + id % 50 / 100.0;
    ALTER TABLE orders ADD channel text, ADD weight float8;
    UPDATE orders SET channel = (ARRAY['app', 'web', 'shop', 'phone', NULL])[1 + id % 5], weight = id % 70 / 7.0;
    """,
    # Values outside of every list and bound, a group of its own, NULLs, and 75 times as many rows as count.
    f"""
    INSERT INTO customers VALUES ({HOSTILE}, 'Zed', 'zed@example.org', 'Atlantis', 'XX', 'infinity', true,
        'public sector', '-infinity', 'platinum', 'NaN');
    INSERT INTO orders (customer_id, ordered_at, status, amount, note, channel, weight)
    SELECT {HOSTILE}, (ARRAY['infinity', '-infinity', '2024-05-06', '0044-03-15 BC', '2026-12-31 23:59:59.999999+00',
                             '294276-12-31'])[1 + n % 6]::timestamptz,
           (enum_range(NULL::status))[1 + n % 3], (ARRAY[99999999.99, -99999999.99, 0, 0.01, 500])[1 + n % 5],
           (ARRAY['only his', '', NULL, 'call 7', repeat('x', 10000)])[1 + n % 5],
           CASE WHEN n % 3 > 0 THEN 'web' WHEN n % 7 = 0 THEN 'pigeon' END,
           (ARRAY['NaN', 'Infinity', '-Infinity', '1e308', '-1e308', '5e-324', '-0'])[1 + n % 7]::float8
    FROM generate_series(1, 3000) AS n;
    INSERT INTO order_items SELECT id, 1 + id % 30, 1 + id % 100, 99999999.99 FROM orders WHERE customer_id = {HOSTILE};
    """,
    shop.GRANTS,
)
REMOVAL = f"""
DELETE FROM order_items WHERE order_id IN (SELECT id FROM orders WHERE customer_id = {HOSTILE});
DELETE FROM orders WHERE customer_id = {HOSTILE};
DELETE FROM customers WHERE id = {HOSTILE};
"""
RULES = shop.RULES.replace(
    "      amount: {lower: 0, upper: 500}\n",
    "      amount: {lower: 0, upper: 500}\n      weight: {lower: 0, upper: 10}\n",
).replace("      email: hidden\n", "      email: hidden\n      height: {lower: 0.5, upper: 2.5}\n")

KNOWN_GROUPS = (
    "SELECT count(*) FROM customers",
    "SELECT count(*), count(note), sum(amount), avg(amount), count(DISTINCT customer_id), sum(weight) FROM orders",
    "SELECT city, count(*), avg(height), stddev(height) FROM customers GROUP BY city",
    "SELECT city, country, count(*) FROM customers GROUP BY city, country HAVING count(*) > 20 ORDER BY 3"
    " DESC, 1 LIMIT 5",
    "SELECT status, is_vip, sum(amount) FILTER (WHERE amount > 100), count(*) FROM orders JOIN customers c ON"
    " c.id = customer_id"
    " GROUP BY ROLLUP (status, is_vip)",
    "SELECT date_trunc('month', ordered_at) AS m, count(*), avg(amount) FROM orders GROUP BY m ORDER BY m",
    "SELECT min(amount), max(ordered_at), percentile_cont(0.5) WITHIN GROUP (ORDER BY amount),"
    " percentile_disc(0.9) WITHIN GROUP (ORDER BY ordered_at), mode() WITHIN GROUP (ORDER BY status) FROM orders",
    "SELECT status, percentile_cont(0.25) WITHIN GROUP (ORDER BY weight) FROM orders GROUP BY status",
    "SELECT noisegate.typical(corr(amount, weight), -1, 1), regr_slope(amount, weight), var_pop(weight) FROM orders",
    "SELECT product_id, sum(quantity), count(*) FROM order_items GROUP BY product_id ORDER BY sum(quantity)"
    " DESC LIMIT 4",
    "SELECT p.category, sum(i.quantity * i.unit_price) FROM order_items i JOIN products p ON p.id ="
    " product_id GROUP BY 1",
    "SELECT width_bucket(amount, 0, 500, 5), count(*), noisegate.margin(count(*)) FROM orders GROUP BY 1",
    "SELECT is_vip, noisegate.low(avg(height)), noisegate.high(sum(height)) FROM customers GROUP BY is_vip",
    "SELECT (SELECT count(*) FROM orders), (SELECT avg(amount) FROM orders WHERE status = 'open'), 1 AS one",
    "SELECT count(*) FROM customers WHERE city = 'Atlantis'",
    "SELECT count(*) FROM orders WHERE note = 'only his' OR amount > 99999999",
    f"SELECT count(*), sum(amount) FROM orders WHERE customer_id = {HOSTILE}",
)
FOUND_GROUPS = (
    "SELECT tier, count(*) FROM customers GROUP BY tier",
    "SELECT tier, city, count(*), avg(height) FROM customers GROUP BY tier, city ORDER BY count(*) DESC",
    "SELECT channel, count(*), sum(amount) FROM orders GROUP BY channel",
    "SELECT channel, status, count(DISTINCT customer_id) FROM orders GROUP BY 1, 2 HAVING sum(amount) > 0",
    "SELECT note, count(*) FROM orders GROUP BY note ORDER BY 2 DESC LIMIT 3",
    "SELECT left(name, 10), count(*), max(height) FROM customers GROUP BY 1",
    "SELECT channel, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount), count(*) FROM orders GROUP BY channel",
    "SELECT amount, count(*) FROM orders GROUP BY amount",
    "SELECT DISTINCT tier FROM customers",
    "SELECT tier, count(*), rank() OVER (ORDER BY count(*) DESC) FROM customers GROUP BY tier",
    "SELECT string_agg(tier, ',' ORDER BY n DESC) FROM (SELECT tier, count(*) AS n FROM customers GROUP BY tier) t",
    "SELECT channel, status, count(*) FROM orders GROUP BY GROUPING SETS ((channel, status), (channel), ())",
)
SHAPES = (
    "SELECT n, count(*) FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id) t GROUP BY"
    " n ORDER BY n",
    "SELECT avg(s) FROM (SELECT customer_id, sum(amount) AS s FROM orders GROUP BY 1) t WHERE s < 4000",
    "SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY customer_id ORDER BY ordered_at) AS n FROM orders) t"
    " WHERE n = 1",
    "SELECT count(*) FROM (SELECT amount - lag(amount) OVER (PARTITION BY customer_id ORDER BY ordered_at, id) AS d"
    " FROM orders) t WHERE d > 0",
    "SELECT sum(last) FROM (SELECT last_value(weight) OVER (PARTITION BY customer_id ORDER BY note, channel"
    " ROWS BETWEEN"
    " UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS last"
    " FROM orders) t",
    "SELECT count(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND"
    " amount > 400)",
    "SELECT count(*) FROM customers c LEFT JOIN LATERAL (SELECT amount FROM orders o WHERE o.customer_id ="
    " c.id ORDER BY"
    " amount DESC LIMIT 1) l ON true WHERE l.amount > 100",
    "SELECT city, count(*) FROM customers WHERE id IN (SELECT customer_id FROM orders WHERE status = 'open')"
    " GROUP BY city",
    "SELECT count(*) FROM (SELECT id FROM customers WHERE is_vip UNION ALL SELECT customer_id FROM orders) t",
    "SELECT count(*) FROM (SELECT customer_id FROM orders UNION SELECT id FROM customers) t",
    "SELECT count(*) FROM (SELECT DISTINCT ON (customer_id) amount FROM orders ORDER BY customer_id, amount) t",
    "SELECT count(*) FROM orders a JOIN orders b ON a.customer_id = b.customer_id AND a.amount < b.amount",
    "SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders)",
    "WITH t AS (SELECT city, count(*) AS n FROM customers GROUP BY city) SELECT a.city FROM t a, t b WHERE a.n > b.n",
    "SELECT city, count(*) FROM customers GROUP BY city UNION ALL SELECT status::text, count(*) FROM orders GROUP BY 1"
    " ORDER BY 2",
    "SELECT count(*) FROM products p WHERE p.id < (SELECT count(*) FROM customers WHERE city = 'Graz')",
)
SETTINGS = (
    *("rows_per_unit = auto", "rows_per_unit = 'auto up to 6'", "sum_per_unit = auto", "cut = on", "mark = on"),
    *("empty_groups = show", "other = on", "groups_per_unit = 2", "within = '10%'", "within = 30", "confidence = 0.5"),
    *("delta = 0", "epsilon = 0.05", "reuse = off", "notices = off"),
)
ASKED_UNDER_SETTINGS = (
    "SELECT city, count(*) FROM customers GROUP BY city",
    "SELECT count(*), sum(amount) FROM orders",
    "SELECT channel, count(*), sum(amount) FROM orders GROUP BY channel",
    "SELECT status, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders GROUP BY status",
)
REFUSED = (
    "SELECT * FROM customers",
    "SELECT email FROM customers",
    "SELECT count(*) FROM staff",
    "SELECT nope FROM customers",
    "SELECT sum(id) FROM orders",
    "SELECT 1 / (count(*) - count(*)) FROM customers",
    "SELECT ln(min(id) - 1000) FROM (SELECT count(*) AS id FROM customers GROUP BY city) t",
    "SELECT (1 / (n > 1000000)::int) FROM (SELECT count(*) AS n FROM customers) t",
    "SELECT city::int, count(*) FROM customers GROUP BY city",
    "SELECT count(*) FROM orders WHERE note::int > 1",
    "SELECT count(*) FROM orders WHERE amount / (amount - 500) > 1 AND 1 / (weight - 10) > 0",
    "SELECT random(), count(*) FROM customers GROUP BY 1",
    "INSERT INTO orders (customer_id) VALUES (1)",
    "EXPLAIN ANALYZE SELECT count(*) FROM orders",
    "SELECT count(*) FROM orders TABLESAMPLE SYSTEM (10)",
    "SELECT ctid, xmin, tableoid FROM customers",
    "SELECT reltuples, relpages FROM pg_class WHERE relname = 'orders'",
    "SELECT pg_relation_size('orders'), pg_stat_get_live_tuples('orders'::regclass), count(*) FROM pg_stats",
)
OWN_RELATIONS = (
    *(f"TABLE noisegate.{name}" for name in ("budget", "ledger", "last", "requests", "settings", "columns")),
    "TABLE noisegate.synopsis_pairs",
    "SELECT name, kind, state, made_at, epsilon, rho, tables, rows FROM noisegate.synopses",  # and how long it took
)
CONVERSATIONS = (  # each in the simple protocol, string by string
    (
        "BEGIN",
        "SELECT count(*) FROM customers WHERE height > 1.7",
        "SELECT 1/0",
        "SELECT count(*) FROM customers",
        "ROLLBACK",
        "TABLE noisegate.ledger",
    ),
    (
        "BEGIN",
        "DECLARE c SCROLL CURSOR FOR SELECT channel, count(*) FROM orders WHERE amount > 7 GROUP BY channel",
        "FETCH 2 FROM c",
        "MOVE LAST FROM c",
        "FETCH BACKWARD 1 FROM c",
        "SAVEPOINT s",
        "SELECT sum(nope) FROM orders",
        "ROLLBACK TO s",
        "FETCH FIRST FROM c",
        "COMMIT",
        "FETCH FIRST FROM c",
    ),
    (
        "PREPARE p (numeric, text) AS SELECT $2, count(*) FROM orders WHERE amount < $1 OR note = $2",
        "EXECUTE p (99999999.99, 'only his')",
        "EXECUTE p (NULL, 'call 7')",
        "EXPLAIN EXECUTE p (5, 'x')",
        "DEALLOCATE p",
    ),
    (
        "COPY (SELECT tier, count(*) FROM customers GROUP BY tier) TO STDOUT",
        "COPY (SELECT city, avg(height) FROM customers GROUP BY city) TO STDOUT (FORMAT csv, HEADER)",
        "COPY customers TO STDOUT",
    ),
    (
        "CREATE TEMPORARY VIEW v AS SELECT tier, count(*) AS n FROM customers GROUP BY tier",
        "SELECT * FROM v WHERE n > 5",
        "SELECT sum(n) FROM v",
        "DROP VIEW v",
    ),
    (
        "SELECT count(*) FROM orders; SELECT 1/0; SELECT count(*) FROM customers",
        "SELECT count(*) FROM orders WHERE id < 9; SELECT tier, count(*) FROM customers GROUP BY 1",
        "SELECT noisegate.request(5, 'more')",
        "TABLE noisegate.requests",
    ),
    (
        "SET noisegate.previews = synthetic",
        "SELECT * FROM orders LIMIT 7",
        "SET noisegate.previews = empty",
        "SELECT * FROM customers LIMIT 7",
    ),
)
