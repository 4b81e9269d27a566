-- How many customers are there?
SELECT count(*) FROM customer;
-- Customers by country.
SELECT country, count(*) FROM customer GROUP BY country ORDER BY 2 DESC;
-- All customers from Canada. (rows)
SELECT first_name, last_name FROM customer WHERE country = 'Canada';
-- Customers who are not from the USA.
SELECT count(*) FROM customer WHERE country <> 'USA';
-- Invoices by billing country.
SELECT billing_country, count(*) FROM invoice GROUP BY billing_country ORDER BY 2 DESC;
-- The countries that invoices are sent to.
SELECT DISTINCT billing_country FROM invoice ORDER BY 1;
-- Sales by country.
SELECT billing_country, sum(total) FROM invoice GROUP BY 1 ORDER BY 2 DESC;
-- [1] Sales by year.
SELECT extract(year FROM invoice_date) AS year, sum(total) FROM invoice GROUP BY 1 ORDER BY 1;
-- [1] Invoices of 2009 and 2011.
SELECT extract(year FROM invoice_date) AS year, count(*) FROM invoice WHERE extract(year FROM invoice_date) IN (2009, 2011) GROUP BY 1 ORDER BY 1;
-- Sales by month.
SELECT date_trunc('month', invoice_date) AS month, sum(total) FROM invoice GROUP BY 1 ORDER BY 1;
-- The mean and the sum of all invoices.
SELECT avg(total), sum(total), count(*) FROM invoice;
-- The best customer. (rows)
SELECT c.first_name, c.last_name, sum(i.total) FROM customer AS c JOIN invoice AS i USING (customer_id) GROUP BY c.customer_id ORDER BY 3 DESC LIMIT 1;
-- Sales of each agent.
SELECT e.first_name || ' ' || e.last_name AS agent, sum(i.total) FROM invoice AS i JOIN customer AS c USING (customer_id) JOIN employee AS e ON e.employee_id = c.support_rep_id GROUP BY 1 ORDER BY 2 DESC;
-- Sales of each agent in 2009.
SELECT e.last_name, sum(i.total) FROM invoice AS i JOIN customer AS c USING (customer_id) JOIN employee AS e ON e.employee_id = c.support_rep_id WHERE i.invoice_date >= '2009-01-01' AND i.invoice_date < '2010-01-01' GROUP BY 1 ORDER BY 2 DESC;
-- Customers of each agent.
SELECT e.last_name, count(*) FROM customer AS c JOIN employee AS e ON e.employee_id = c.support_rep_id GROUP BY e.last_name ORDER BY 2 DESC;
-- [2] Agents without customers: public employees with none.
SELECT e.employee_id, e.last_name, count(c.customer_id) FROM employee AS e LEFT JOIN customer AS c ON c.support_rep_id = e.employee_id GROUP BY e.employee_id, e.last_name ORDER BY 1;
-- Lines of invoice 37. (rows)
SELECT * FROM invoice_line WHERE invoice_id = 37;
-- How many lines are there?
SELECT count(*) FROM invoice_line;
-- Lines in an invoice on average.
SELECT count(*)::numeric / count(DISTINCT invoice_id) FROM invoice_line;
-- Lines with names of tracks. (rows)
SELECT l.invoice_line_id, t.name FROM invoice_line AS l JOIN track AS t USING (track_id);
-- Sales by genre.
SELECT g.name, sum(l.unit_price * l.quantity) FROM invoice_line AS l JOIN track AS t USING (track_id) JOIN genre AS g USING (genre_id) GROUP BY g.name ORDER BY 2 DESC;
-- Tracks sold by genre.
SELECT g.name, count(*) AS sold FROM invoice_line AS l JOIN track AS t USING (track_id) JOIN genre AS g USING (genre_id) GROUP BY g.name ORDER BY sold DESC;
-- The genre that sells most in each country.
SELECT country, name, n FROM (SELECT c.country, g.name, count(*) AS n, rank() OVER (PARTITION BY c.country ORDER BY count(*) DESC) AS r FROM invoice_line AS l JOIN invoice AS i USING (invoice_id) JOIN customer AS c USING (customer_id) JOIN track AS t USING (track_id) JOIN genre AS g USING (genre_id) GROUP BY 1, 2) AS t WHERE r = 1 ORDER BY 1;
-- Sales by media type.
SELECT m.name, sum(l.quantity) FROM invoice_line AS l JOIN track AS t USING (track_id) JOIN media_type AS m USING (media_type_id) GROUP BY 1 ORDER BY 2 DESC;
-- The five artists who sell best.
SELECT a.name, sum(l.unit_price * l.quantity) FROM invoice_line AS l JOIN track AS t USING (track_id) JOIN album AS b USING (album_id) JOIN artist AS a USING (artist_id) GROUP BY a.name ORDER BY 2 DESC LIMIT 5;
-- The tracks that sold most in 2010.
SELECT t.name, count(*) FROM invoice_line AS l JOIN invoice AS i USING (invoice_id) JOIN track AS t USING (track_id) WHERE extract(year FROM i.invoice_date) = 2010 GROUP BY t.name ORDER BY 2 DESC LIMIT 5;
-- Tracks by genre: public alone.
SELECT g.name, count(*) FROM track AS t JOIN genre AS g USING (genre_id) GROUP BY 1 ORDER BY 2 DESC;
-- Albums of an artist: public alone.
SELECT title FROM album JOIN artist USING (artist_id) WHERE name = 'Artist 3' ORDER BY 1;
-- The mean length of tracks sold, in seconds.
SELECT avg(t.milliseconds / 1000.0) FROM invoice_line AS l JOIN track AS t USING (track_id);
-- Tracks that nobody bought: a count.
SELECT count(*) FROM track AS t WHERE NOT EXISTS (SELECT 1 FROM invoice_line AS l WHERE l.track_id = t.track_id);
-- Customers with a company.
SELECT count(company), count(*) FROM customer;
-- Average invoice by country.
SELECT billing_country, round(avg(total), 2) FROM invoice GROUP BY 1 ORDER BY 2 DESC;
-- The average a customer spends.
SELECT avg(spent) FROM (SELECT customer_id, sum(total) AS spent FROM invoice GROUP BY 1) AS t;
-- The average a customer spends, by country.
SELECT c.country, avg(spent) FROM (SELECT customer_id, sum(total) AS spent FROM invoice GROUP BY 1) AS t JOIN customer AS c USING (customer_id) GROUP BY 1 ORDER BY 2 DESC;
-- Customers by country, those with few as Other.
SELECT CASE WHEN n < 10 THEN 'Other' ELSE country END AS place, sum(n) FROM (SELECT country, count(*) AS n FROM customer GROUP BY 1) AS t GROUP BY 1 ORDER BY 2 DESC;
-- Customers who bought rock.
SELECT count(DISTINCT i.customer_id) FROM invoice AS i JOIN invoice_line AS l USING (invoice_id) JOIN track AS t USING (track_id) JOIN genre AS g USING (genre_id) WHERE g.name = 'Rock';
-- The share of customers who bought rock.
SELECT 100.0 * count(DISTINCT i.customer_id) FILTER (WHERE g.name = 'Rock') / count(DISTINCT i.customer_id) FROM invoice AS i JOIN invoice_line AS l USING (invoice_id) JOIN track AS t USING (track_id) JOIN genre AS g USING (genre_id);
-- E-mail addresses of those who listen to rock. (rows)
SELECT DISTINCT c.last_name FROM customer AS c JOIN invoice AS i USING (customer_id) JOIN invoice_line AS l USING (invoice_id) JOIN track AS t USING (track_id) WHERE t.genre_id = 1;
-- Invoices above ten.
SELECT count(*) FROM invoice WHERE total > 10;
-- Invoices by size.
SELECT CASE WHEN total < 5 THEN 'small' WHEN total < 15 THEN 'medium' ELSE 'large' END AS size, count(*), sum(total) FROM invoice GROUP BY 1 ORDER BY 1;
-- Sales by quarter.
SELECT to_char(invoice_date, 'YYYY-"Q"Q') AS quarter, sum(total) FROM invoice GROUP BY 1 ORDER BY 1;
-- Sales of weekends and other days.
SELECT extract(isodow FROM invoice_date) > 5 AS weekend, sum(total), count(*) FROM invoice GROUP BY 1;
-- The median invoice.
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM invoice;
-- [2] Sales by country and year.
SELECT billing_country, extract(year FROM invoice_date) AS year, sum(total) FROM invoice GROUP BY 1, 2 ORDER BY 1, 2;
-- The generated column's total.
SELECT sum(line_total), avg(line_total) FROM invoice_line;
-- Employees and to whom they report: public alone.
SELECT e.last_name, m.last_name FROM employee AS e LEFT JOIN employee AS m ON m.employee_id = e.reports_to ORDER BY 1;
-- Customers who bought in more than three years.
SELECT count(*) FROM (SELECT customer_id FROM invoice GROUP BY 1 HAVING count(DISTINCT extract(year FROM invoice_date)) > 3) AS t;
