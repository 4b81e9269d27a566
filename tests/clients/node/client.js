// What Node's pg does with a proxy: prints one line of JSON with everything it got.
const { Client, Pool } = require("pg");
const Cursor = require("pg-cursor");

const [cities, amounts, rows] = JSON.parse(process.argv[2]);
const target = {
  host: "127.0.0.1",
  port: Number(process.env.PGPORT),
  user: "ada",
  database: process.env.PGDATABASE,
  password: process.env.PGPASSWORD,
  ssl: { rejectUnauthorized: false },
};

const values = (result) => result.rows.map((row) => Object.values(row));

async function main() {
  const got = {};
  for (const ssl of [false, target.ssl]) {
    const hasty = new Client({ ...target, ssl });
    hasty.connect();
    await hasty.end(); // before it has connected: its first packet is a Terminate
  }
  const client = new Client(target);
  await client.connect();
  got.simple = values(await client.query(cities));
  got.parameters = values(await client.query(amounts, ["50"]));
  got.prepared = [];
  for (let turn = 0; turn < 3; turn++) {
    got.prepared.push(values(await client.query({ name: "cities", text: cities })));
  }
  got.binary = (await client.query({ text: "SELECT count(*) FROM customers", binary: true })).rows.length;
  got.refused = await client.query(rows).catch((error) => error.code);
  got.refusedPrepared = await client.query(rows + " OFFSET $1", [0]).catch((error) => error.code);
  await client.query("BEGIN");
  got.refusedInTransaction = await client.query(rows).catch((error) => error.code);
  got.aborted = await client.query("SELECT 1").catch((error) => error.code);
  await client.query("ROLLBACK");
  const cursor = client.query(new Cursor(cities));
  got.cursor = [...(await cursor.read(2)), ...(await cursor.read(10))].map(Object.values);
  await cursor.close();
  await client.query("");
  await client.end();

  const pool = new Pool({ ...target, max: 2 });
  got.pool = (await Promise.all([cities, cities, cities].map((text) => pool.query(text)))).map(values);
  await pool.end();
  console.log(JSON.stringify(got));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
