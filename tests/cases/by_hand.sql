What analysts write by hand who know SQL: windows over the orders of each customer, latest rows, LATERAL, subqueries
that depend on their row.

--# The days between two orders of a customer
--> answer, 1 row
SELECT avg(gap) AS days FROM (
    SELECT ordered_at::date - lag(ordered_at::date) OVER (PARTITION BY customer_id ORDER BY ordered_at) AS gap FROM orders
) AS gaps
--> answer, apart
SELECT channel, avg(gap) FROM (
    SELECT channel, ordered_at::date - lag(ordered_at::date) OVER w AS gap
    FROM orders WINDOW w AS (PARTITION BY customer_id ORDER BY ordered_at)
) AS gaps GROUP BY channel ORDER BY channel
--> refused 42501: a window function over rows of different units
SELECT avg(gap) FROM (SELECT ordered_at - lag(ordered_at) OVER (ORDER BY ordered_at) AS gap FROM orders) AS gaps

--# First and later orders
--> answer
SELECT date_trunc('year', ordered_at) AS year, count(*) FILTER (WHERE n = 1) AS first, count(*) FILTER (WHERE n > 1) AS later
FROM (SELECT ordered_at, row_number() OVER (PARTITION BY customer_id ORDER BY ordered_at, id) AS n FROM orders) AS numbered
GROUP BY 1 ORDER BY 1
--> answer
SELECT channel, count(*) AS customers FROM (
    SELECT DISTINCT ON (customer_id) customer_id, channel FROM orders ORDER BY customer_id, ordered_at DESC, id
) AS latest GROUP BY channel ORDER BY channel
--> answer
SELECT status, count(*) FROM orders AS o
WHERE id = (SELECT max(id) FROM orders AS p WHERE p.customer_id = o.customer_id) GROUP BY status ORDER BY status

--# The latest orders of each customer, beside the customer
--> answer
SELECT c.segment, count(*), avg(latest.amount)
FROM customers AS c
CROSS JOIN LATERAL (
    SELECT amount FROM orders AS o WHERE o.customer_id = c.id ORDER BY ordered_at DESC, id LIMIT 2
) AS latest
GROUP BY c.segment ORDER BY c.segment
--> answer, 1 row
SELECT avg(orders) FROM customers AS c, LATERAL (SELECT count(*) AS orders FROM orders AS o WHERE o.customer_id = c.id) AS t

--# Subqueries that depend on their row, anywhere
--> answer, 1 row
SELECT count(*) FROM customers AS c
WHERE newsletter OR NOT EXISTS (SELECT FROM orders AS o WHERE o.customer_id = c.id AND o.status = 'returned')
--> answer
SELECT CASE WHEN EXISTS (SELECT FROM orders AS o WHERE o.customer_id = c.id) THEN 'buyer' ELSE 'guest' END AS who, count(*)
FROM customers AS c GROUP BY 1 ORDER BY 1
--> answer
SELECT (SELECT p.category FROM products AS p WHERE p.id = i.product_id) AS category, sum(quantity)
FROM order_items AS i GROUP BY 1 ORDER BY 1
--> answer, 1 row
SELECT count(*) FROM orders AS o
WHERE amount > (SELECT avg(p.amount) FROM orders AS p WHERE p.customer_id = o.customer_id)
--> answer, 1 row
SELECT count(*) FROM orders AS o WHERE (SELECT sum(quantity) FROM order_items AS i WHERE i.order_id = o.id) > 3
--> refused 0A000: a subquery used as an expression could return more than one row
SELECT count(*) FROM customers AS c WHERE (SELECT channel FROM orders AS o WHERE o.customer_id = c.id) = 'web'

--# Sums of different values, medians of each customer
--> answer, 1 row, apart
SELECT sum(DISTINCT discount), count(DISTINCT discount) FROM orders
--> answer, 1 row
SELECT avg(median) FROM (
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS median FROM orders GROUP BY customer_id
) AS customers

--# Comparisons with all rows of a subquery, and with rows of several columns
--> answer, 1 row
SELECT count(*) FROM orders AS o WHERE amount >= ALL (SELECT p.amount FROM orders AS p WHERE p.customer_id = o.customer_id)
--> answer, 1 row
SELECT count(*) FROM orders WHERE (customer_id, ordered_at) IN (SELECT customer_id, max(ordered_at) FROM orders GROUP BY 1)
--> answer
SELECT channel, count(*) FROM orders WHERE amount > ALL (SELECT avg(amount) FROM orders GROUP BY channel)
GROUP BY channel ORDER BY channel
--> answer, 1 row
SELECT count(*) FROM order_items WHERE unit_price > ALL (SELECT price FROM products WHERE category = 'books')
--> refused 42501: protected tables must be joined
SELECT count(*) FROM orders AS o WHERE amount > ALL (SELECT p.amount FROM orders AS p)

--# Rolling windows of each customer
--> answer, 1 row
SELECT count(*) FROM (
    SELECT count(*) OVER (PARTITION BY customer_id ORDER BY ordered_at RANGE '30 days' PRECEDING) AS n FROM orders
) AS rolling WHERE n >= 3
--> answer, 1 row
SELECT count(*) FROM (
    SELECT amount, avg(amount) OVER (PARTITION BY customer_id ORDER BY ordered_at, id
        ROWS BETWEEN 3 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) AS before FROM orders
) AS rolling WHERE amount > before

--# Groups by a primary key, sets of customers, what comes after a row, pairs
--> answer, apart
SELECT p.id, p.name, p.category, sum(i.quantity) FROM products AS p JOIN order_items AS i ON i.product_id = p.id
GROUP BY p.id ORDER BY p.id
--> answer, 1 row
SELECT count(*) FROM (
    SELECT customer_id FROM orders WHERE ordered_at < '2024-01-01'
    INTERSECT SELECT customer_id FROM orders WHERE ordered_at >= '2025-01-01'
) AS loyal
--> answer, 1 row
SELECT count(*) FROM orders AS o WHERE (
    SELECT min(p.ordered_at) FROM orders AS p WHERE p.customer_id = o.customer_id AND p.ordered_at > o.ordered_at
) < o.ordered_at + interval '90 days'
--> answer
SELECT channel, status, count(*) FROM orders WHERE (channel, status) IN (('web', 'delivered'), ('app', 'delivered'))
GROUP BY channel, status ORDER BY channel, status
--> answer, 1 row, apart
SELECT count(DISTINCT (channel, status)) FROM orders
--> answer, 1 row
SELECT count(*) FROM customers WHERE city LIKE 'B!%%' ESCAPE '!' OR city LIKE 'B_%' ESCAPE '!'
--> answer, 1 row
SELECT count(*) FROM orders WHERE (ordered_at, interval '1 day') OVERLAPS (timestamp '2025-01-01', timestamp '2025-03-01')

--# Times of the day
--> answer, 1 row
SELECT count(*) FROM orders WHERE ordered_at::time BETWEEN '18:00' AND '23:59' AND extract(isodow FROM ordered_at) IN (6, 7)

--# Groups that are above every answer of another question
--> answer
SELECT status, sum(amount) FROM orders GROUP BY status HAVING sum(amount) > ALL (SELECT avg(amount) FROM orders GROUP BY channel)
--> answer
SELECT status, count(*) FROM orders GROUP BY status HAVING avg(amount) >= ANY (SELECT avg(amount) FROM orders GROUP BY status)
ORDER BY status

--# People by level: each level is an answer of its own
--> answer
SELECT channel, count(DISTINCT customer_id) AS customers, grouping(channel) FROM orders GROUP BY ROLLUP (channel) ORDER BY 3, 1
--> answer
SELECT channel, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders GROUP BY ROLLUP (channel)
