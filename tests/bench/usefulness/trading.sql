-- How many orders are there?
SELECT count(*) FROM orders;
-- [1] Orders by year.
SELECT extract(year FROM order_date) AS year, count(*) FROM orders GROUP BY 1 ORDER BY 1;
-- [1] Orders by employee.
SELECT employee_id, count(*) FROM orders GROUP BY 1 ORDER BY 2 DESC;
-- [2] Orders by name of the employee.
SELECT e.employee_id, e.last_name, count(*) FROM orders AS o JOIN employees AS e USING (employee_id) GROUP BY 1, 2 ORDER BY 3 DESC;
-- Orders by first and last name of the employee.
SELECT e.first_name || ' ' || e.last_name AS name, count(*) FROM orders AS o JOIN employees AS e USING (employee_id) GROUP BY 1 ORDER BY 2 DESC;
-- Orders by shipper.
SELECT s.company_name, count(*) FROM orders AS o JOIN shippers AS s ON s.shipper_id = o.ship_via GROUP BY 1 ORDER BY 2 DESC;
-- Average freight by shipper.
SELECT s.company_name, avg(o.freight) FROM orders AS o JOIN shippers AS s ON s.shipper_id = o.ship_via GROUP BY 1 ORDER BY 2 DESC;
-- [2] Total freight by year and shipper.
SELECT extract(year FROM order_date) AS year, ship_via, sum(freight) FROM orders GROUP BY 1, 2 ORDER BY 1, 2;
-- Customers by country.
SELECT country, count(*) FROM customers GROUP BY country ORDER BY 2 DESC;
-- Customers by segment.
SELECT segment, count(*) FROM customers GROUP BY segment ORDER BY 1;
-- Customers in Germany. (rows)
SELECT company_name FROM customers WHERE country = 'Germany' ORDER BY 1;
-- Customers without orders: a count.
SELECT count(*) FROM customers AS c LEFT JOIN orders AS o USING (customer_id) WHERE o.order_id IS NULL;
-- The ten largest customers. (rows)
SELECT c.company_name, sum(d.amount) FROM customers AS c JOIN orders AS o USING (customer_id) JOIN order_details AS d USING (order_id) GROUP BY 1 ORDER BY 2 DESC LIMIT 10;
-- Turnover of all orders.
SELECT sum(amount) FROM order_details;
-- Turnover with price, quantity and discount.
SELECT sum(unit_price * quantity * (1 - discount)) FROM order_details;
-- Turnover by category.
SELECT c.category_name, sum(d.amount) FROM order_details AS d JOIN products AS p USING (product_id) JOIN categories AS c USING (category_id) GROUP BY 1 ORDER BY 2 DESC;
-- Turnover by category and product.
SELECT c.category_name, p.product_name, sum(d.amount) FROM order_details AS d JOIN products AS p USING (product_id) JOIN categories AS c USING (category_id) GROUP BY 1, 2 ORDER BY 3 DESC;
-- The five products that sell best.
SELECT p.product_name, sum(d.quantity) FROM order_details AS d JOIN products AS p USING (product_id) GROUP BY 1 ORDER BY 2 DESC LIMIT 5;
-- Margin: amount without cost.
SELECT sum(d.amount - p.cost * d.quantity) FROM order_details AS d JOIN products AS p USING (product_id);
-- Turnover by supplier's country.
SELECT s.country, sum(d.amount) FROM order_details AS d JOIN products AS p USING (product_id) JOIN suppliers AS s USING (supplier_id) GROUP BY 1 ORDER BY 2 DESC;
-- Turnover by month.
SELECT date_trunc('month', o.order_date) AS month, sum(d.amount) FROM orders AS o JOIN order_details AS d USING (order_id) GROUP BY 1 ORDER BY 1;
-- Turnover by quarter.
SELECT to_char(date_trunc('quarter', o.order_date), 'YYYY-MM') AS quarter, sum(d.amount) FROM orders AS o JOIN order_details AS d USING (order_id) GROUP BY 1 ORDER BY 1;
-- Turnover of 1997 by country of the customer.
SELECT c.country, sum(d.amount) FROM customers AS c JOIN orders AS o USING (customer_id) JOIN order_details AS d USING (order_id) WHERE o.order_date BETWEEN '1997-01-01' AND '1997-12-31' GROUP BY 1 ORDER BY 2 DESC;
-- Turnover by employee's region.
SELECT r.region_description, sum(d.amount) FROM order_details AS d JOIN orders AS o USING (order_id) JOIN employee_territories AS t USING (employee_id) JOIN territories AS y USING (territory_id) JOIN region AS r USING (region_id) GROUP BY 1 ORDER BY 2 DESC;
-- Orders that were shipped late.
SELECT count(*) FROM orders WHERE shipped_date > required_date;
-- Orders that are not shipped yet.
SELECT count(*) FROM orders WHERE shipped_date IS NULL;
-- Days until orders are shipped, on average.
SELECT avg(shipped_date - order_date) FROM orders;
-- [1] Days until orders are shipped, by shipper.
SELECT ship_via, avg(shipped_date - order_date) FROM orders GROUP BY 1 ORDER BY 1;
-- [1] Orders by the days that they took.
SELECT shipped_date - order_date AS days, count(*) FROM orders WHERE shipped_date IS NOT NULL GROUP BY 1 ORDER BY 1;
-- Average value of an order.
SELECT avg(value) FROM (SELECT order_id, sum(amount) AS value FROM order_details GROUP BY order_id) AS t;
-- Average value of an order, as a ratio.
SELECT sum(amount) / count(DISTINCT order_id) FROM order_details;
-- Orders of more than three products.
SELECT count(*) FROM (SELECT order_id FROM order_details GROUP BY 1 HAVING count(*) > 3) AS t;
-- [1] Products in an order, as a histogram.
SELECT n, count(*) FROM (SELECT order_id, count(*) AS n FROM order_details GROUP BY 1) AS t GROUP BY n ORDER BY n;
-- Average discount where one was given.
SELECT avg(discount) FROM order_details WHERE discount > 0;
-- The share of lines with a discount.
SELECT avg((discount > 0)::integer) FROM order_details;
-- [2] Quantity by category and year.
SELECT c.category_name, extract(year FROM o.order_date) AS year, sum(d.quantity) FROM orders AS o JOIN order_details AS d USING (order_id) JOIN products AS p USING (product_id) JOIN categories AS c USING (category_id) GROUP BY 1, 2 ORDER BY 1, 2;
-- Products that are discontinued: public alone.
SELECT product_name FROM products WHERE discontinued = 1 ORDER BY 1;
-- Products above the average price: public alone.
SELECT product_name, unit_price FROM products WHERE unit_price > (SELECT avg(unit_price) FROM products) ORDER BY 2 DESC;
-- Territories by region: public alone.
SELECT r.region_description, count(*) FROM territories AS t JOIN region AS r USING (region_id) GROUP BY 1 ORDER BY 1;
-- Lines of products above the average price.
SELECT count(*) FROM order_details AS d WHERE d.product_id IN (SELECT product_id FROM products WHERE unit_price > (SELECT avg(unit_price) FROM products));
-- Lines whose price is not the list's.
SELECT count(*) FROM order_details AS d JOIN products AS p USING (product_id) WHERE d.unit_price <> p.unit_price;
-- Orders of customers by segment.
SELECT c.segment, count(*) FROM orders AS o JOIN customers AS c USING (customer_id) GROUP BY 1 ORDER BY 1;
-- [1] Customers who ordered, by year.
SELECT extract(year FROM order_date) AS year, count(DISTINCT customer_id) FROM orders GROUP BY 1 ORDER BY 1;
-- Customers who ordered, by category.
SELECT c.category_name, count(DISTINCT o.customer_id) FROM orders AS o JOIN order_details AS d USING (order_id) JOIN products AS p USING (product_id) JOIN categories AS c USING (category_id) GROUP BY 1 ORDER BY 2 DESC;
-- Orders to a country other than the customer's.
SELECT count(*) FROM orders AS o JOIN customers AS c USING (customer_id) WHERE o.ship_country <> c.country;
-- Orders by ship country.
SELECT ship_country, count(*) FROM orders GROUP BY 1 ORDER BY 2 DESC;
-- Average freight of heavy orders.
SELECT avg(freight) FROM orders WHERE freight > 50;
-- Running total of turnover by month.
SELECT month, sum(v) OVER (ORDER BY month) FROM (SELECT date_trunc('month', o.order_date) AS month, sum(d.amount) AS v FROM orders AS o JOIN order_details AS d USING (order_id) GROUP BY 1) AS t ORDER BY 1;
-- Each category's share of the turnover.
SELECT category_name, 100 * v / sum(v) OVER () AS share FROM (SELECT c.category_name, sum(d.amount) AS v FROM order_details AS d JOIN products AS p USING (product_id) JOIN categories AS c USING (category_id) GROUP BY 1) AS t ORDER BY 2 DESC;
-- [1] Employees above the average number of orders.
SELECT employee_id, n FROM (SELECT employee_id, count(*) AS n, avg(count(*)) OVER () AS mean FROM orders GROUP BY 1) AS t WHERE n > mean ORDER BY 2 DESC;
-- Order 10250 with its lines. (rows)
SELECT * FROM orders JOIN order_details USING (order_id) WHERE order_id = 10250;
-- Subtotals of orders. (rows)
SELECT order_id, sum(amount) FROM order_details GROUP BY order_id ORDER BY 1;
-- Correlation of freight and number of days.
SELECT corr(freight, shipped_date - order_date) FROM orders;
