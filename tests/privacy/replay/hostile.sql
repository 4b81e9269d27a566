SELECT tier::int, count(*) FROM customers GROUP BY tier
SELECT k::int, n FROM (SELECT tier AS k, count(*) AS n FROM customers GROUP BY tier) t
SELECT max(k::date) FROM (SELECT note AS k, count(*) AS n FROM orders GROUP BY note) t
SELECT k, n, lag(n) OVER (ORDER BY n), ntile(2) OVER (ORDER BY n DESC), sum(n) OVER (ROWS 1 PRECEDING) FROM (SELECT channel AS k, count(*) n FROM orders GROUP BY 1) t
SELECT channel, count(*) FROM orders GROUP BY channel EXCEPT SELECT channel, count(*) FROM orders WHERE amount > 0 GROUP BY channel
SELECT channel FROM orders GROUP BY channel INTERSECT SELECT tier FROM customers GROUP BY tier
(SELECT tier, count(*) FROM customers GROUP BY tier ORDER BY 2 DESC LIMIT 1) UNION ALL (SELECT channel, count(*) FROM orders GROUP BY 1 ORDER BY 2 LIMIT 1)
SELECT c.tier, l.n FROM (SELECT tier FROM customers GROUP BY tier) c, LATERAL (SELECT count(*) n FROM orders) l
SELECT p.id, (SELECT count(*) FROM order_items i WHERE i.product_id = p.id) FROM products p WHERE p.id < 6
SELECT p.category, count(DISTINCT o.customer_id) FROM products p LEFT JOIN order_items i ON i.product_id = p.id LEFT JOIN orders o ON o.id = i.order_id GROUP BY 1
SELECT count(*) FROM orders o WHERE o.amount = (SELECT max(amount) FROM orders i WHERE i.customer_id = o.customer_id)
SELECT count(*) FROM orders WHERE amount > ALL (SELECT 1000000 FROM customers WHERE city = 'Atlantis')
SELECT count(*) FROM customers WHERE id NOT IN (SELECT customer_id FROM orders WHERE note = 'only his')
SELECT count(*) FROM customers WHERE NOT EXISTS (SELECT 1 FROM orders WHERE note = 'only his')
SELECT count(*) FROM customers WHERE EXISTS (SELECT 1 FROM customers WHERE city = 'Atlantis')
SELECT CASE WHEN EXISTS (SELECT 1 FROM customers WHERE city = 'Atlantis') THEN 1 ELSE 0 END
SELECT 1 WHERE EXISTS (SELECT 1 FROM orders WHERE amount > 9999999)
SELECT generate_series(1, count(*)) FROM customers WHERE city = 'Atlantis'
SELECT repeat('x', count(*)::int) FROM customers
SELECT array_agg(n) FROM (SELECT count(*) n FROM orders GROUP BY channel) t
SELECT json_object_agg(coalesce(channel,'-'), n) FROM (SELECT channel, count(*) n FROM orders GROUP BY channel) t
SELECT count(*) FROM orders WHERE note LIKE 'only%' ESCAPE '#'
SELECT count(*) FROM orders WHERE note ~ '^(x+x+)+y'
SELECT count(*) FROM orders WHERE note SIMILAR TO 'o%s' OR note ILIKE '%HIS'
SELECT length(note), count(*) FROM orders GROUP BY 1
SELECT md5(note), count(*) FROM orders GROUP BY 1
SELECT note || channel || status::text, count(*) FROM orders GROUP BY 1
SELECT repeat(note, 100000), count(*) FROM orders GROUP BY 1
SELECT count(*) FROM orders WHERE length(repeat(note, 1000000)) > 5
SELECT string_agg(note, ',') FROM orders
SELECT sum(weight * 1e308), avg(weight ^ 3), sum(exp(weight)) FROM orders
SELECT sum(1 / weight), sum(ln(weight)), sum(sqrt(weight - 5)) FROM orders
SELECT sum(least(greatest(amount * amount * amount * amount, 0), 100)) FROM orders
SELECT sum(least(greatest((amount::int8 * 9223372036854775)::int, 0), 100)) FROM orders
SELECT extract(year FROM ordered_at), count(*) FROM orders GROUP BY 1
SELECT to_char(ordered_at, 'YYYY BC'), count(*) FROM orders GROUP BY 1
SELECT date_trunc('week', ordered_at AT TIME ZONE 'Asia/Kathmandu'), count(*) FROM orders GROUP BY 1 ORDER BY 2 DESC LIMIT 3
SELECT sum(extract(epoch FROM ordered_at - timestamptz '2024-01-01')) FROM orders
SELECT count(*) FROM orders WHERE ordered_at + interval '100000 years' > now()
SELECT count(*) FROM orders WHERE age(ordered_at) > interval '1 day'
SELECT birth_date + 1000000, count(*) FROM customers GROUP BY 1
SELECT birth_date - date '2000-01-01', count(*) FROM customers GROUP BY 1
SELECT joined::date, count(*) FROM customers GROUP BY 1
SELECT width_bucket(weight, 0, 10, 4), count(*) FROM orders GROUP BY 1
SELECT weight, count(*) FROM orders GROUP BY weight ORDER BY weight
SELECT id, count(*) FROM customers GROUP BY id ORDER BY id DESC
SELECT customer_id % 7, count(*) FROM orders GROUP BY 1
SELECT customer_id / 1000000000, count(*) FROM orders GROUP BY 1
SELECT corr(amount, weight), covar_samp(amount, quantity), regr_r2(weight, amount) FROM orders JOIN order_items ON order_id = orders.id
SELECT min(note), max(name) FROM orders, customers
SELECT bool_and(is_vip), bool_or(is_vip), every(height > 1) FROM customers
SELECT mode() WITHIN GROUP (ORDER BY channel) FROM orders
SELECT mode() WITHIN GROUP (ORDER BY tier), percentile_cont(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY height) FROM customers
SELECT tier, percentile_disc(0.5) WITHIN GROUP (ORDER BY height), noisegate.margin(percentile_disc(0.5) WITHIN GROUP (ORDER BY height)) FROM customers GROUP BY tier
SELECT median FROM (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY s) AS median FROM (SELECT customer_id, sum(amount) s FROM orders GROUP BY 1) t) u
SELECT d, count(*) FROM (SELECT customer_id, max(ordered_at)::date - min(ordered_at)::date AS d FROM orders GROUP BY 1) t GROUP BY d
SELECT first, count(*) FROM (SELECT customer_id, first_value(channel) OVER (PARTITION BY customer_id ORDER BY ordered_at, id) AS first FROM orders) t GROUP BY first
SELECT count(*) FROM (SELECT rank() OVER (ORDER BY amount DESC) r FROM orders) t WHERE r < 10
SELECT count(*) FROM (SELECT row_number() OVER () r, * FROM orders) t WHERE r < 10
SELECT count(*) FROM (SELECT * FROM orders ORDER BY amount DESC LIMIT 10) t
SELECT count(*) FROM (SELECT * FROM orders OFFSET 100) t
SELECT sum(share) FROM (SELECT amount / nullif(sum(amount) OVER (PARTITION BY customer_id), 0) AS share FROM orders) t
SELECT count(*), tier FROM customers JOIN orders ON customer_id = customers.id WHERE note IS NOT NULL GROUP BY ROLLUP (tier)
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT count(*) FROM customers WHERE city='Graz')) SELECT count(*) FROM r
WITH o AS MATERIALIZED (SELECT * FROM orders) SELECT status, count(*) FROM o GROUP BY 1
SELECT count(*) FROM customers FOR UPDATE
SELECT count(*) FROM ONLY orders, customers c WHERE c.id = customer_id AND c.tier = 'platinum'
SELECT tableoid::regclass, count(*) FROM orders GROUP BY 1
EXPLAIN (VERBOSE, COSTS off) SELECT tier, count(*) FROM customers GROUP BY tier
EXPLAIN (FORMAT YAML) SELECT note, count(*), sum(amount) FROM orders GROUP BY note
EXPLAIN (SETTINGS, BUFFERS off, SUMMARY) SELECT count(*) FROM orders WHERE note = 'only his'
SELECT relname, n_live_tup, seq_scan FROM pg_stat_all_tables WHERE relname IN ('orders','customers') ORDER BY 1
SELECT schemaname, tablename, attname, n_distinct FROM pg_stats WHERE tablename = 'orders'
SELECT last_value FROM pg_sequences
SELECT pg_size_pretty(pg_database_size(current_database())) IS NOT NULL
SELECT b.account, b.epsilon_left, (SELECT count(*) FROM customers) FROM noisegate.budget b
SELECT state, tables, epsilon, statement FROM noisegate.ledger ORDER BY time DESC LIMIT 9
SELECT column_name, margin, cut, groups_left_out FROM noisegate.last
SELECT count(*) FROM noisegate.ledger l JOIN customers c ON true
SELECT noisegate.request(1, 'x' || (SELECT count(*) FROM customers))
BEGIN; SELECT count(*) FROM orders WHERE amount > 3; ROLLBACK
SELECT set_config('noisegate.epsilon', (SELECT least(0.5, count(*))::text FROM customers WHERE city = 'Graz'), false)
SELECT * FROM noisegate.settings WHERE name = 'noisegate.epsilon'
RESET ALL
DECLARE h CURSOR WITH HOLD FOR SELECT note, count(*) FROM orders GROUP BY note
FETCH ALL FROM h
SELECT name, statement, generic_plans, custom_plans FROM pg_prepared_statements
SELECT noisegate.typical(avg(amount), 0, 500), noisegate.typical(count(*), 0, 50) FROM orders
SELECT channel, noisegate.typical(sum(amount) / nullif(count(*), 0), 0, 500) FROM orders GROUP BY channel
SELECT count(DISTINCT channel), count(DISTINCT note), sum(DISTINCT amount) FROM orders
SELECT grouping(channel, status), channel, status, sum(amount) FROM orders GROUP BY CUBE (channel, status)
SELECT sum(CASE WHEN channel = 'web' THEN 1 ELSE 0 END), sum(CASE WHEN channel = 'pigeon' THEN amount END) FROM orders
SELECT channel, count(*) FILTER (WHERE status = 'open'), count(*) FILTER (WHERE status = 'paid') FROM orders GROUP BY channel
SELECT city, tier, segment, count(*) FROM customers GROUP BY 1, 2, 3
SELECT product_id, channel, count(*) FROM order_items JOIN orders ON orders.id = order_id GROUP BY 1, 2
SELECT product_id FROM order_items GROUP BY 1 ORDER BY count(*) DESC LIMIT 3
SELECT product_id, count(DISTINCT customer_id) AS people FROM order_items JOIN orders ON orders.id = order_id WHERE product_id BETWEEN 1 AND 30 GROUP BY 1 ORDER BY people DESC LIMIT 2
SELECT CURRENT_DATE - max(birth_date) FROM customers
SHOW noisegate.epsilon
COPY (SELECT note, count(*) FROM orders GROUP BY note) TO STDOUT (FORMAT binary)
CREATE TEMP VIEW tv AS SELECT note, count(*) AS n FROM orders GROUP BY note
SELECT tv.n + 0, r.n FROM tv, (SELECT count(*) n FROM orders) r
SET noisegate.rows_per_unit = auto; SELECT channel, note, count(*), sum(weight) FROM orders GROUP BY 1, 2
SELECT channel, avg(weight), max(weight) FROM orders GROUP BY 1
RESET noisegate.rows_per_unit; SET noisegate.sum_per_unit = auto; SELECT channel, sum(amount) FROM orders GROUP BY 1
SET noisegate.cut = on; SELECT count(*) FROM orders WHERE weight IS NOT NULL
SET noisegate.within = '5%'; SELECT channel, count(*) FROM orders WHERE id > 3 GROUP BY 1
SELECT tier, avg(height) FROM customers GROUP BY 1
SET noisegate.within = 4; SELECT count(*) FROM customers WHERE height > 1.4; RESET noisegate.within
SET noisegate.other = on; SELECT city, country, count(*) FROM customers GROUP BY 1, 2
SELECT city, is_vip, avg(height) FROM customers GROUP BY 1, 2
SET noisegate.mark = on; SELECT tier, city, count(*) FROM customers GROUP BY 1, 2
SET noisegate.groups_per_unit = 3; SELECT note, channel, count(*) FROM orders WHERE status <> 'open' GROUP BY 1, 2
SELECT cut, margin, left_out FROM noisegate.last
TABLE noisegate.last
