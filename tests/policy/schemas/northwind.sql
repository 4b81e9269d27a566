-- The shape of Northwind: keys of text, names without a plan, and units_on_order, which is no order.
CREATE TABLE categories (category_id smallint PRIMARY KEY, category_name varchar(15) NOT NULL, description text);
CREATE TABLE suppliers (
    supplier_id smallint PRIMARY KEY, company_name varchar(40) NOT NULL, contact_name varchar(30), phone varchar(24)
);
CREATE TABLE products (
    product_id smallint PRIMARY KEY, product_name varchar(40) NOT NULL, category_id smallint REFERENCES categories,
    unit_price real, units_in_stock smallint, units_on_order smallint, discontinued integer NOT NULL
);
CREATE TABLE customers (
    customer_id varchar(5) PRIMARY KEY, company_name varchar(40) NOT NULL, contact_name varchar(30), city varchar(15)
);
CREATE TABLE customer_demographics (customer_type_id varchar(5) PRIMARY KEY, customer_desc text);
CREATE TABLE customer_customer_demo (
    customer_id varchar(5) REFERENCES customers, customer_type_id varchar(5) REFERENCES customer_demographics,
    PRIMARY KEY (customer_id, customer_type_id)
);
CREATE TABLE employees (
    employee_id smallint PRIMARY KEY, last_name varchar(20) NOT NULL, first_name varchar(10) NOT NULL, birth_date date,
    reports_to smallint REFERENCES employees
);
CREATE TABLE region (region_id smallint PRIMARY KEY, region_description varchar(60) NOT NULL);
CREATE TABLE territories (
    territory_id varchar(20) PRIMARY KEY, territory_description varchar(60), region_id smallint REFERENCES region
);
CREATE TABLE employee_territories (
    employee_id smallint REFERENCES employees, territory_id varchar(20) REFERENCES territories,
    PRIMARY KEY (employee_id, territory_id)
);
CREATE TABLE shippers (shipper_id smallint PRIMARY KEY, company_name varchar(40) NOT NULL);
CREATE TABLE orders (
    order_id smallint PRIMARY KEY, customer_id varchar(5) REFERENCES customers, employee_id smallint REFERENCES employees,
    order_date date, ship_via smallint REFERENCES shippers, freight real
);
CREATE TABLE order_details (
    order_id smallint REFERENCES orders, product_id smallint REFERENCES products, unit_price real, quantity smallint,
    PRIMARY KEY (order_id, product_id)
);
