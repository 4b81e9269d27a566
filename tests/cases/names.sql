Names of columns are exactly PostgreSQL's, whatever a tool calls them: charts find their columns by name.

--# Default names
--> answer, apart
SELECT count(*), sum(amount), avg(amount), count(*) + 1, -count(*), count(*)::text || 'x', CASE WHEN count(*) > 0 THEN sum(amount) END, coalesce(sum(amount), 0), round(avg(amount), 1), nullif(count(*), 0), greatest(count(*), 1), (SELECT 1), count(*)::float8, extract(year from max(ordered_at)), EXISTS (SELECT 1), ARRAY[count(*)], date_trunc('day', max(ordered_at)) IS NULL FROM orders WHERE amount > 20

--# Letters, spaces, dots, percent, dollars, quotes, more than 63 bytes
--> answer
SELECT channel AS "Sales Channel", count(*) AS "orders.count", sum(amount) AS "sum:amount:ok", avg(amount) AS "50 % of $1", count(DISTINCT customer_id) AS "say ""hi""", count(*) AS "Größe", sum(amount) AS "a name that is far longer than the sixty-three bytes that PostgreSQL keeps" FROM orders GROUP BY "Sales Channel" ORDER BY "orders.count" DESC

--# An alias that is the name of a column
--> answer
SELECT DATE_TRUNC('YEAR', ordered_at) AS ordered_at, COUNT(*) AS count FROM orders GROUP BY DATE_TRUNC('YEAR', ordered_at) ORDER BY count DESC
--> answer
SELECT upper(city) AS city, count(*) AS amount FROM customers GROUP BY upper(city) ORDER BY city DESC

--# The same name twice, and no name
--> answer
SELECT count(*), count(*), count(newsletter), sum(1) AS count FROM customers
--> answer
SELECT count(*) AS "?column?", 1, 2 FROM customers

--# Columns renamed by the outer query, and by a star
--> answer
SELECT t.* FROM (SELECT segment, count(*) FROM customers GROUP BY 1) AS t (kind, "how many") ORDER BY 2
--> again
SELECT * FROM (SELECT segment, count(*) AS n FROM customers GROUP BY 1) AS t ORDER BY n

--# Words that are keywords elsewhere
--> answer
SELECT newsletter AS "select", count(*) AS "from", avg(extract(year from birth_date)) AS "user" FROM customers GROUP BY 1 ORDER BY "from"
