Transactions, savepoints, cursors and prepared statements around private answers.

--# An error inside a savepoint is rolled back to it
--> free
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY
--> answer
SELECT count(*) FROM customers
--> free
SAVEPOINT "_per_query_svp_"
--> refused 42501: rows of a protected table
SELECT * FROM customers
--> error 25P02: current transaction is aborted
SELECT count(*) FROM orders
--> free
ROLLBACK TO SAVEPOINT "_per_query_svp_"
--> again
SELECT count(*) FROM customers
--> free
RELEASE "_per_query_svp_"
--> free
COMMIT

--# A division by zero in what the twin computes
--> free
BEGIN
--> error 22012: division by zero
SELECT count(*) / 0 FROM customers
--> free
ROLLBACK

--# A cursor that is held outlives its transaction
--> free
BEGIN
--> answer
DECLARE held SCROLL CURSOR WITH HOLD FOR SELECT city, count(*) FROM customers GROUP BY city ORDER BY city
--> free, 2 rows
FETCH 2 FROM held
--> free
COMMIT
--> free, 9 rows
FETCH ABSOLUTE 0 FROM held; FETCH FORWARD ALL FROM held
--> free
MOVE ABSOLUTE 3 IN held
--> free, 1 row
FETCH NEXT FROM held
--> free
CLOSE ALL

--# A cursor that is not held needs a transaction
--> error 34000: cursor "c" does not exist
FETCH 1 FROM c
--> error 25P01: DECLARE CURSOR can only
DECLARE c CURSOR FOR SELECT count(*) FROM customers

--# PREPARE and EXECUTE as SQL, with parameters
--> free
PREPARE by_channel (numeric, text) AS SELECT channel, count(*) FROM orders WHERE amount > $1 AND channel::text <> $2 GROUP BY channel ORDER BY channel
--> answer, other rows
EXECUTE by_channel (50, 'web')
--> again, other rows
EXECUTE by_channel (50.0, 'web')
--> free
DEALLOCATE by_channel
--> error 26000: prepared statement "by_channel"
EXECUTE by_channel (50, 'web')

--# PREPARE and EXECUTE in one string
--> answer
PREPARE once AS SELECT count(*) FROM customers WHERE newsletter; EXECUTE once
--> again
EXECUTE once
--> free
BEGIN
--> again
PREPARE twice (boolean) AS SELECT count(*) FROM customers WHERE newsletter = $1; EXECUTE once
--> free
COMMIT
--> free
DEALLOCATE ALL

--# Several statements in one string: each is decided on its own
--> answer, 1 row
SELECT 1; SELECT count(*) FROM customers; SELECT count(*) FROM orders
--> refused 42501: rows of a protected table
SELECT count(*) FROM customers; SELECT * FROM customers; SELECT 1
--> free, 1 row
BEGIN; SELECT 1; COMMIT; SELECT 2

--# DISCARD ALL between two uses of a pooled connection
--> answer
SELECT count(*) FROM customers
--> free
SET TimeZone = 'Asia/Tokyo'
--> free
SET noisegate.epsilon = 5
--> free
DISCARD ALL
--> free, 1 row
SHOW TimeZone
--> again
SELECT count(*) FROM customers

--# COPY of an answer
--> refused 42501
COPY customers TO STDOUT
--> free, 1 row
SELECT 1

--# Time zones and date styles of the client
--> free
SET DateStyle = 'German'; SET TimeZone = 'America/New_York'; SET IntervalStyle = 'iso_8601'
--> answer
SELECT date_trunc('year', ordered_at) AS year, count(*) FROM orders WHERE ordered_at >= '2023-12-31' GROUP BY 1 ORDER BY 1
--> answer
SELECT joined_on, count(*) FROM customers WHERE joined_on BETWEEN '2022-02-01' AND '2022-02-03' GROUP BY 1 ORDER BY 1
--> answer
--$ 31.12.2023
SELECT count(*) FROM orders WHERE ordered_at >= $1
--> again
SELECT count(*) FROM orders WHERE ordered_at >= '31.12.2023'
--> free
SET DateStyle = 'SQL, DMY'
--> again
SELECT date_trunc('year', ordered_at) AS year, count(*) FROM orders WHERE ordered_at >= '2023-12-31' GROUP BY 1 ORDER BY 1

--# Client encodings that are not UTF8
--> free
SET client_encoding = 'LATIN1'
--> answer
SELECT city AS "Größe", count(*) FROM customers WHERE city <> 'Köln' GROUP BY 1 ORDER BY 1
--> free
SET client_encoding = 'WIN1252'
--> again
SELECT city AS "Größe", count(*) FROM customers WHERE city <> 'Köln' GROUP BY 1 ORDER BY 1
