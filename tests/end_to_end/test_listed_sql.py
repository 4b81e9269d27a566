"""What a proxy in a process of its own sends to the real database is looked at in the log of the server."""

import psycopg

from proxy.twin.embedded import Cluster
from tests.support.listed_sql import sent_to, unlisted
from tests.support.running import Noisegate


def test_statements_of_a_running_proxy_are_found_in_the_log_of_the_server(
    proxy: Noisegate, real_cluster: Cluster
) -> None:
    with psycopg.connect(proxy.dsn(), autocommit=True) as session:
        session.execute("SELECT count(*) FROM orders WHERE amount + 7123 > 7200")

    found = [sql for sql in sent_to(real_cluster) if "7123" in sql]

    assert found and not any(map(unlisted, found))
    assert unlisted(found[0].replace("count(", "pg_sleep(", 1)) == {"pg_sleep"}
