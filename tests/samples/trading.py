"""A trading company: 91 customers with a code of five letters, lines with a composite key, territories of employees."""

SCHEMA = """
CREATE TABLE categories (category_id smallint PRIMARY KEY, category_name varchar(15) NOT NULL);
CREATE TABLE suppliers (supplier_id smallint PRIMARY KEY, company_name varchar(40) NOT NULL, country varchar(15));
CREATE TABLE products (
    product_id smallint PRIMARY KEY, product_name varchar(40) NOT NULL, supplier_id smallint REFERENCES suppliers,
    category_id smallint REFERENCES categories, unit_price real, cost numeric(8,2) NOT NULL,
    discontinued integer NOT NULL
);
CREATE TABLE employees (
    employee_id smallint PRIMARY KEY, last_name varchar(20) NOT NULL, first_name varchar(10) NOT NULL,
    reports_to smallint REFERENCES employees
);
CREATE TABLE region (region_id smallint PRIMARY KEY, region_description varchar(60) NOT NULL);
CREATE TABLE territories (
    territory_id varchar(20) PRIMARY KEY, territory_description varchar(60) NOT NULL,
    region_id smallint NOT NULL REFERENCES region
);
CREATE TABLE employee_territories (
    employee_id smallint NOT NULL REFERENCES employees, territory_id varchar(20) NOT NULL REFERENCES territories,
    PRIMARY KEY (employee_id, territory_id)
);
CREATE TABLE shippers (shipper_id smallint PRIMARY KEY, company_name varchar(40) NOT NULL);
CREATE TABLE customers (
    customer_id char(5) PRIMARY KEY, company_name varchar(40) NOT NULL, segment char(8), country varchar(15)
);
CREATE TABLE orders (
    order_id integer PRIMARY KEY, customer_id char(5) REFERENCES customers, employee_id smallint REFERENCES employees,
    order_date date NOT NULL CHECK (order_date >= '1996-01-01' AND order_date <= '1998-12-31'), required_date date,
    shipped_date date, ship_via smallint REFERENCES shippers, freight real, ship_country varchar(15)
);
CREATE TABLE order_details (
    order_id integer NOT NULL REFERENCES orders, product_id smallint NOT NULL REFERENCES products,
    unit_price real NOT NULL, quantity smallint NOT NULL CHECK (quantity > 0 AND quantity <= 200),
    discount real NOT NULL, amount numeric(10,2) NOT NULL CHECK (amount BETWEEN 0 AND 5000),
    PRIMARY KEY (order_id, product_id)
);
"""

DATA = """
INSERT INTO categories SELECT i, (ARRAY['Beverages', 'Condiments', 'Confections', 'Dairy', 'Grains', 'Meat', 'Produce',
    'Seafood'])[i] FROM generate_series(1, 8) AS i;
INSERT INTO suppliers SELECT i, 'Supplier ' || i, (ARRAY['UK', 'USA', 'Japan'])[1 + i % 3]
FROM generate_series(1, 29) AS i;
INSERT INTO products SELECT i, 'Product ' || i, 1 + i % 29, 1 + i % 8, 2 + i * 1.5, 1 + i % 30, (i % 9 = 0)::integer
FROM generate_series(1, 77) AS i;
INSERT INTO employees SELECT i, (ARRAY['Davolio', 'Fuller', 'Leverling', 'Peacock', 'Buchanan', 'Suyama', 'King',
    'Callahan', 'Dodsworth'])[i], 'First ' || i % 4, CASE WHEN i <> 2 THEN 2 END FROM generate_series(1, 9) AS i;
INSERT INTO region VALUES (1, 'Eastern'), (2, 'Western'), (3, 'Northern'), (4, 'Southern');
INSERT INTO territories SELECT (1000 + i)::text, 'Territory ' || i, 1 + i % 4 FROM generate_series(1, 40) AS i;
INSERT INTO employee_territories SELECT 1 + i % 9, (1000 + i)::text FROM generate_series(1, 40) AS i;
INSERT INTO shippers VALUES (1, 'Speedy'), (2, 'United'), (3, 'Federal');
INSERT INTO customers SELECT chr(65 + i % 26) || chr(65 + i / 26) || 'ABC', 'Company ' || i,
    (ARRAY['small', 'middle', 'large'])[1 + i % 3], (ARRAY['Germany', 'UK', 'USA', 'France'])[1 + i * i % 4]
FROM generate_series(1, 91) AS i;
INSERT INTO orders SELECT 10247 + i, c.customer_id, 1 + i % 9, date '1996-07-04' + i * 2 / 3,
    date '1996-07-04' + i * 2 / 3 + 28, CASE WHEN i % 40 > 0 THEN date '1996-07-04' + i * 2 / 3 + 3 + i % 12 END,
    1 + i % 3, (i * 37 % 900) / 10.0, c.country
FROM generate_series(1, 830) AS i JOIN (SELECT *, row_number() OVER (ORDER BY customer_id) AS n FROM customers) AS c
    ON c.n = 1 + (i * i) % 89;
INSERT INTO order_details SELECT o.order_id, p.product_id, p.unit_price, 1 + o.order_id * n % 60,
    CASE WHEN n % 2 = 0 THEN 0.05 ELSE 0 END, p.cost * 2
FROM orders AS o, generate_series(1, 4) AS n JOIN products AS p ON true
WHERE p.product_id = 1 + (o.order_id * 3 + n * 19) % 77 AND n <= 1 + o.order_id % 4;
ANALYZE;
"""

RULES = """\
database: ${NOISEGATE_DATABASE}
unit: customers.customer_id
tables:
  customers:
    unit: customer_id
    columns:
      segment: {values: [small, middle, large]}
      country: {values: [Germany, UK, USA, France]}
  orders:
    unit: customer_id
    rows_per_unit: 30
    columns:
      required_date: {lower: 1996-01-01, upper: 1998-12-31}
      shipped_date: {lower: 1996-01-01, upper: 1998-12-31}
      freight: {lower: 0, upper: 500}
  order_details:
    unit: order_id -> orders.order_id
    rows_per_unit: 80
    columns:
      unit_price: {lower: 0, upper: 150}
      discount: {lower: 0, upper: 0.5}
  categories: public
  suppliers: public
  products: public
  employees: {public: {because: "customers know their agent by name"}}
  region: public
  territories: public
  employee_territories: public
  shippers: public
"""
