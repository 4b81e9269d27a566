-- The shape of Pagila: a film rental, whose staff are people as its customers are.
CREATE TABLE country (country_id integer PRIMARY KEY, country text NOT NULL);
CREATE TABLE city (city_id integer PRIMARY KEY, city text NOT NULL, country_id integer NOT NULL REFERENCES country);
CREATE TABLE address (
    address_id integer PRIMARY KEY, address text NOT NULL, district text, city_id integer NOT NULL REFERENCES city, phone text
);
CREATE TABLE language (language_id integer PRIMARY KEY, name character(20) NOT NULL);
CREATE TABLE category (category_id integer PRIMARY KEY, name text NOT NULL);
CREATE TABLE film (
    film_id integer PRIMARY KEY, title text NOT NULL, release_year integer, language_id integer NOT NULL REFERENCES language,
    rental_rate numeric(4,2) NOT NULL, length smallint, replacement_cost numeric(5,2) NOT NULL
);
CREATE TABLE film_category (
    film_id integer REFERENCES film, category_id integer REFERENCES category, PRIMARY KEY (film_id, category_id)
);
CREATE TABLE actor (actor_id integer PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL);
CREATE TABLE film_actor (
    actor_id integer REFERENCES actor, film_id integer REFERENCES film, PRIMARY KEY (actor_id, film_id)
);
CREATE TABLE staff (
    staff_id integer PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL, address_id integer REFERENCES address,
    email text, username text NOT NULL
);
CREATE TABLE store (
    store_id integer PRIMARY KEY, manager_staff_id integer NOT NULL REFERENCES staff, address_id integer REFERENCES address
);
CREATE TABLE inventory (
    inventory_id integer PRIMARY KEY, film_id integer NOT NULL REFERENCES film, store_id integer NOT NULL REFERENCES store
);
CREATE TABLE customer (
    customer_id integer PRIMARY KEY, store_id integer NOT NULL REFERENCES store, first_name text NOT NULL,
    last_name text NOT NULL, email text, address_id integer NOT NULL REFERENCES address, create_date date NOT NULL
);
CREATE TABLE rental (
    rental_id integer PRIMARY KEY, rental_date timestamp NOT NULL, inventory_id integer NOT NULL REFERENCES inventory,
    customer_id integer NOT NULL REFERENCES customer, staff_id integer NOT NULL REFERENCES staff
);
CREATE TABLE payment (
    payment_id integer, customer_id integer NOT NULL, staff_id integer NOT NULL, rental_id integer NOT NULL,
    amount numeric(5,2) NOT NULL, payment_date timestamp NOT NULL
) PARTITION BY RANGE (payment_date);
CREATE TABLE payment_2022_01 PARTITION OF payment FOR VALUES FROM ('2022-01-01') TO ('2022-02-01');
CREATE TABLE payment_2022_02 PARTITION OF payment FOR VALUES FROM ('2022-02-01') TO ('2022-03-01');
ALTER TABLE payment_2022_01 ADD FOREIGN KEY (customer_id) REFERENCES customer;
ALTER TABLE payment_2022_02 ADD FOREIGN KEY (customer_id) REFERENCES customer;
CREATE VIEW sales_by_store AS SELECT store_id, sum(amount) FROM payment JOIN customer USING (customer_id) GROUP BY 1;
