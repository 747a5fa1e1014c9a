-- Items and orders of the shop.
CREATE TABLE item (id int PRIMARY KEY, title text, price int);
INSERT INTO item SELECT n, 'item ' || n, n % 997 FROM generate_series(1, 1000) AS n;
CREATE TABLE orders (id int PRIMARY KEY, item int, customer text);
INSERT INTO orders
SELECT n, 1 + n * 7 % 1000, 'customer ' || n % 211 FROM generate_series(1, 5000) AS n;
ANALYZE;
