pandas, through SQLAlchemy: statements are asked whether they are tables, text is passed on as it is.

--# Whether the text is the name of a table
--> free, 0 rows
SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace WHERE pg_catalog.pg_class.relname = 'SELECT city, count(*) FROM customers GROUP BY city' AND pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm']) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog'

--# A frame inside the transaction that SQLAlchemy begins
--> free
BEGIN
--> free, 1 row
select pg_catalog.version()
--> free, 1 row
select current_schema()
--> free, 1 row
show standard_conforming_strings
--> answer
SELECT city, count(*) AS n FROM customers GROUP BY city
--> free
ROLLBACK

--# Parameters with casts
--> answer
--$ 50
--$ 10
SELECT channel, avg(amount) AS mean FROM orders WHERE amount > $1::NUMERIC GROUP BY channel ORDER BY mean LIMIT $2::INTEGER
--> answer
--$ web
--$ {paid,sent,delivered}
SELECT count(*) FROM orders WHERE channel = $1::channel AND status = ANY ($2::order_status[])
--> answer
--$ Berlin
SELECT count(*) FROM customers WHERE city = $1::VARCHAR

--# read_sql_table is rows
--> refused 42501: rows of a protected table
SELECT customers.id, customers.city, customers.birth_date FROM customers

--# A server-side cursor, read in pieces
--> free
BEGIN
--> free
DECLARE "c_1" CURSOR WITHOUT HOLD FOR SELECT 1
--> answer
DECLARE "c_7f9" CURSOR FOR SELECT city, count(*) AS n FROM customers GROUP BY city ORDER BY city
--> free, 4 rows
FETCH FORWARD 4 FROM "c_7f9"
--> free, 5 rows
FETCH FORWARD 1000 FROM "c_7f9"
--> free
CLOSE "c_7f9"
--> free
COMMIT
