-- The shape of Chinook: quoted names in capitals, and a customer whose employee looks after him.
CREATE TABLE "Artist" ("ArtistId" integer PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "Album" (
    "AlbumId" integer PRIMARY KEY, "Title" varchar(160) NOT NULL, "ArtistId" integer NOT NULL REFERENCES "Artist"
);
CREATE TABLE "Genre" ("GenreId" integer PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "MediaType" ("MediaTypeId" integer PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "Track" (
    "TrackId" integer PRIMARY KEY, "Name" varchar(200) NOT NULL, "AlbumId" integer REFERENCES "Album",
    "MediaTypeId" integer NOT NULL REFERENCES "MediaType", "GenreId" integer REFERENCES "Genre",
    "Composer" varchar(220), "UnitPrice" numeric(10,2) NOT NULL
);
CREATE TABLE "Playlist" ("PlaylistId" integer PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "PlaylistTrack" (
    "PlaylistId" integer REFERENCES "Playlist", "TrackId" integer REFERENCES "Track", PRIMARY KEY ("PlaylistId", "TrackId")
);
CREATE TABLE "Employee" (
    "EmployeeId" integer PRIMARY KEY, "LastName" varchar(20) NOT NULL, "FirstName" varchar(20) NOT NULL,
    "ReportsTo" integer REFERENCES "Employee", "BirthDate" timestamp, "Email" varchar(60)
);
CREATE TABLE "Customer" (
    "CustomerId" integer PRIMARY KEY, "FirstName" varchar(40) NOT NULL, "LastName" varchar(20) NOT NULL, "Country" varchar(40),
    "Email" varchar(60) NOT NULL, "SupportRepId" integer REFERENCES "Employee"
);
CREATE TABLE "Invoice" (
    "InvoiceId" integer PRIMARY KEY, "CustomerId" integer NOT NULL REFERENCES "Customer", "InvoiceDate" timestamp NOT NULL,
    "Total" numeric(10,2) NOT NULL
);
CREATE TABLE "InvoiceLine" (
    "InvoiceLineId" integer PRIMARY KEY, "InvoiceId" integer NOT NULL REFERENCES "Invoice",
    "TrackId" integer NOT NULL REFERENCES "Track", "Quantity" integer NOT NULL
);
