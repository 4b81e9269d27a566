-- How many customers are there?
SELECT count(*) FROM customer;
-- How many customers are active?
SELECT count(*) FROM customer WHERE activebool;
-- [1] Customers by store.
SELECT store_id, count(*) FROM customer GROUP BY store_id ORDER BY store_id;
-- The ten customers who paid most. (rows)
SELECT c.first_name, c.last_name, sum(p.amount) AS total FROM customer AS c JOIN payment AS p ON p.customer_id = c.customer_id GROUP BY c.first_name, c.last_name ORDER BY total DESC LIMIT 10;
-- All customers whose last name begins with L. (rows)
SELECT first_name, last_name FROM customer WHERE last_name LIKE 'L%' ORDER BY last_name;
-- What did all rentals bring?
SELECT sum(amount) FROM payment;
-- Revenue by month.
SELECT date_trunc('month', payment_date) AS month, sum(amount) FROM payment GROUP BY 1 ORDER BY 1;
-- [1] Revenue and number of payments by member of staff.
SELECT staff_id, sum(amount), count(*) FROM payment GROUP BY staff_id ORDER BY 2 DESC;
-- Revenue by name of staff.
SELECT s.first_name || ' ' || s.last_name AS staff, sum(p.amount) FROM payment AS p JOIN staff AS s USING (staff_id) GROUP BY 1 ORDER BY 2 DESC;
-- The average payment.
SELECT avg(amount) FROM payment;
-- The average payment, rounded.
SELECT round(avg(amount)::numeric, 2) FROM payment;
-- The smallest and the largest payment.
SELECT percentile_disc(0.01) WITHIN GROUP (ORDER BY amount), percentile_disc(0.99) WITHIN GROUP (ORDER BY amount) FROM payment;
-- Rentals by category.
SELECT c.name, count(*) FROM rental AS r JOIN inventory AS i USING (inventory_id) JOIN film_category AS fc USING (film_id) JOIN category AS c USING (category_id) GROUP BY c.name ORDER BY 2 DESC;
-- Revenue by category.
SELECT c.name, sum(p.amount) AS revenue FROM payment AS p JOIN rental AS r ON r.rental_id = p.rental_id AND r.customer_id = p.customer_id JOIN inventory AS i USING (inventory_id) JOIN film_category AS fc USING (film_id) JOIN category AS c USING (category_id) GROUP BY c.name ORDER BY revenue DESC;
-- Revenue by category, joined by the rental alone.
SELECT c.name, sum(p.amount) AS revenue FROM payment AS p JOIN rental AS r ON r.rental_id = p.rental_id JOIN inventory AS i USING (inventory_id) JOIN film_category AS fc USING (film_id) JOIN category AS c USING (category_id) GROUP BY c.name ORDER BY revenue DESC;
-- Rentals by rating.
SELECT f.rating, count(*) FROM rental AS r JOIN inventory AS i USING (inventory_id) JOIN film AS f USING (film_id) GROUP BY f.rating ORDER BY 2 DESC;
-- How long is a film kept on average?
SELECT avg(return_date - rental_date) FROM rental;
-- How many days is a film kept on average?
SELECT avg(extract(epoch FROM return_date - rental_date) / 86400) FROM rental;
-- Rentals that were not returned.
SELECT count(*) FROM rental WHERE return_date IS NULL;
-- The share of rentals that were not returned.
SELECT 100.0 * count(*) FILTER (WHERE return_date IS NULL) / count(*) FROM rental;
-- [1] Rentals by hour of the day.
SELECT extract(hour FROM rental_date) AS hour, count(*) FROM rental GROUP BY 1 ORDER BY 1;
-- Rentals by day of the week.
SELECT to_char(rental_date, 'Day') AS day, count(*) FROM rental GROUP BY 1 ORDER BY 2 DESC;
-- Rentals by quarter.
SELECT to_char(date_trunc('quarter', rental_date), 'YYYY "Q"Q') AS quarter, count(*) FROM rental GROUP BY 1 ORDER BY 1;
-- Rentals by day in June.
SELECT rental_date::date AS day, count(*) FROM rental WHERE rental_date >= '2022-06-01' AND rental_date < '2022-07-01' GROUP BY 1 ORDER BY 1;
-- Active customers by month: who rented anything.
SELECT date_trunc('month', rental_date) AS month, count(DISTINCT customer_id) FROM rental GROUP BY 1 ORDER BY 1;
-- Customers by country.
SELECT co.country, count(*) FROM customer AS c JOIN address AS a USING (address_id) JOIN city AS ci USING (city_id) JOIN country AS co USING (country_id) GROUP BY co.country ORDER BY 2 DESC;
-- Revenue by country.
SELECT co.country, sum(p.amount) FROM payment AS p JOIN customer AS c USING (customer_id) JOIN address AS a USING (address_id) JOIN city AS ci USING (city_id) JOIN country AS co USING (country_id) GROUP BY co.country ORDER BY 2 DESC;
-- Customers by country and city.
SELECT co.country, ci.city, count(*) FROM customer AS c JOIN address AS a USING (address_id) JOIN city AS ci USING (city_id) JOIN country AS co USING (country_id) GROUP BY 1, 2 ORDER BY 3 DESC;
-- The ten films that were rented most.
SELECT f.title, count(*) FROM rental AS r JOIN inventory AS i USING (inventory_id) JOIN film AS f USING (film_id) GROUP BY f.title ORDER BY 2 DESC LIMIT 10;
-- Films by category: public alone.
SELECT c.name, count(*) FROM film_category AS fc JOIN category AS c USING (category_id) GROUP BY c.name ORDER BY 2 DESC;
-- The longest films: public alone.
SELECT title, length FROM film ORDER BY length DESC LIMIT 5;
-- Actors with the most films: public alone.
SELECT a.first_name, a.last_name, count(*) FROM actor AS a JOIN film_actor AS fa USING (actor_id) GROUP BY a.actor_id ORDER BY 3 DESC LIMIT 3;
-- Rentals of films whose text matches a word.
SELECT count(*) FROM rental AS r JOIN inventory AS i USING (inventory_id) WHERE i.film_id IN (SELECT film_id FROM film WHERE fulltext @@ to_tsquery('film'));
-- Rentals of long films.
SELECT count(*) FROM rental AS r JOIN inventory AS i USING (inventory_id) JOIN film AS f USING (film_id) WHERE f.length > 120;
-- Rentals of films above the average length.
SELECT count(*) FROM rental AS r JOIN inventory AS i USING (inventory_id) JOIN film AS f USING (film_id) WHERE f.length > (SELECT avg(length) FROM film);
-- How many rentals has a customer on average?
SELECT avg(n) FROM (SELECT customer_id, count(*) AS n FROM rental GROUP BY customer_id) AS t;
-- [1] Customers by the number of their rentals.
SELECT n, count(*) FROM (SELECT customer_id, count(*) AS n FROM rental GROUP BY customer_id) AS t GROUP BY n ORDER BY n;
-- Customers with more than ten rentals.
SELECT count(*) FROM (SELECT customer_id FROM rental GROUP BY customer_id HAVING count(*) > 10) AS t;
-- Customers who spent more than fifty.
SELECT count(*) FROM (SELECT customer_id, sum(amount) AS total FROM payment GROUP BY 1) AS t WHERE total > 50;
-- Who spent more than a hundred? (rows)
SELECT customer_id, sum(amount) FROM payment GROUP BY customer_id HAVING sum(amount) > 100;
-- The median of what customers spent.
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM (SELECT customer_id, least(sum(amount), 300) AS total FROM payment GROUP BY 1) AS t;
-- Customers who never rented.
SELECT count(*) FROM customer AS c WHERE NOT EXISTS (SELECT 1 FROM rental AS r WHERE r.customer_id = c.customer_id);
-- Customers who rented in both stores.
SELECT count(*) FROM (SELECT r.customer_id FROM rental AS r JOIN inventory AS i USING (inventory_id) GROUP BY r.customer_id HAVING count(DISTINCT i.store_id) = 2) AS t;
-- [1] Revenue by store.
SELECT i.store_id, sum(p.amount) FROM payment AS p JOIN rental AS r USING (rental_id) JOIN inventory AS i USING (inventory_id) GROUP BY 1 ORDER BY 1;
-- [2] Revenue by store and month.
SELECT s.store_id, date_trunc('month', p.payment_date) AS month, sum(p.amount) FROM payment AS p JOIN staff AS s USING (staff_id) GROUP BY 1, 2 ORDER BY 1, 2;
-- Cumulated revenue by month.
SELECT month, sum(revenue) OVER (ORDER BY month) FROM (SELECT date_trunc('month', payment_date) AS month, sum(amount) AS revenue FROM payment GROUP BY 1) AS t ORDER BY month;
-- Growth of revenue from month to month.
WITH m AS (SELECT date_trunc('month', payment_date) AS month, sum(amount) AS revenue FROM payment GROUP BY 1) SELECT month, revenue - lag(revenue) OVER (ORDER BY month) FROM m ORDER BY month;
-- The rank of the categories by rentals.
SELECT name, rank() OVER (ORDER BY n DESC) FROM (SELECT c.name, count(*) AS n FROM rental AS r JOIN inventory AS i USING (inventory_id) JOIN film_category AS fc USING (film_id) JOIN category AS c USING (category_id) GROUP BY c.name) AS t ORDER BY 2;
-- Customers by payment class.
SELECT CASE WHEN amount < 2 THEN 'low' WHEN amount < 5 THEN 'middle' ELSE 'high' END AS class, count(*), sum(amount) FROM payment GROUP BY 1 ORDER BY 1;
-- [1] A histogram of payments.
SELECT width_bucket(amount, 0, 12, 6) AS bucket, count(*) FROM payment GROUP BY 1 ORDER BY 1;
-- New customers by month.
SELECT date_trunc('month', create_date) AS month, count(*) FROM customer GROUP BY 1 ORDER BY 1;
-- Rentals that lasted longer than a week.
SELECT count(*) FROM rental WHERE return_date - rental_date > interval '7 days';
-- [1] Late returns by member of staff.
SELECT staff_id, count(*) FROM rental WHERE return_date > rental_date + interval '5 days' GROUP BY staff_id ORDER BY 1;
-- All e-mail-like names in one text. (rows)
SELECT string_agg(first_name || '.' || last_name, ', ') FROM customer WHERE store_id = 1;
-- The latest rental of each customer. (rows)
SELECT DISTINCT ON (customer_id) customer_id, rental_date FROM rental ORDER BY customer_id, rental_date DESC;
-- [2] Totals by staff and month, with subtotals.
SELECT staff_id, extract(month FROM payment_date) AS month, sum(amount) FROM payment GROUP BY ROLLUP (1, 2) ORDER BY 1, 2;
-- Everything about customer 42. (rows)
SELECT * FROM customer WHERE customer_id = 42;
