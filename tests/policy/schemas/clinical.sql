-- A hospital: vitals by the thousand without a key, numbers of patients under other names, and staff.
CREATE SCHEMA clinical;
CREATE TABLE clinical.ward (ward_id integer PRIMARY KEY, name text NOT NULL, beds integer);
CREATE TABLE clinical.patient (
    patient_id integer PRIMARY KEY, mrn text UNIQUE, family_name text, birth_date date, sex text, ward_id integer
);
CREATE TABLE clinical.diagnosis (icd10 text PRIMARY KEY, label text);
CREATE TABLE clinical.admission (
    admission_id integer PRIMARY KEY, patient_id integer NOT NULL REFERENCES clinical.patient,
    ward_id integer REFERENCES clinical.ward, admitted timestamp
);
CREATE TABLE clinical.vitals (pid integer NOT NULL, taken timestamp NOT NULL, pulse integer, systolic integer);
CREATE INDEX ON clinical.vitals (pid);
CREATE TABLE clinical.lab_result (lab_id bigint PRIMARY KEY, ptid integer, analyte text, result numeric);
CREATE TABLE clinical.note (note_id bigint PRIMARY KEY, lab_id bigint REFERENCES clinical.lab_result, length integer);
CREATE TABLE clinical.physician (physician_id integer PRIMARY KEY, first_name text, last_name text, email text);
CREATE TABLE clinical.shift (
    shift_id integer PRIMARY KEY, physician_id integer REFERENCES clinical.physician, began timestamp
);
CREATE TABLE clinical.on_call (on_call_id integer PRIMARY KEY, physician_id integer, day date);
CREATE TABLE clinical.unit_of_measure (code text PRIMARY KEY, name text);
