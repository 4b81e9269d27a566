"""A startup brings settings of its own session, and reaches nothing else of the twin."""

import psycopg
import pytest

from proxy.session.sessions import AT_START, check_startup
from proxy.twin.embedded import Cluster
from rules.refusal import BadSetting, UnknownSetting
from tests.server.raw import RawClient, errors
from tests.server.stage import ANALYST, DATABASE, Stage


@pytest.mark.parametrize(
    "options",
    [
        "",
        "  ",
        "-c work_mem=1MB",
        "-cwork_mem=1MB --geqo=off",
        "--search-path=public -c application_name=a\\ -W\\ 6",
        "-c noisegate.epsilon=0.5",
    ],
)
def test_settings_by_name_are_admitted(options: str) -> None:
    check_startup({"options": options, "client_encoding": "UTF8"})


@pytest.mark.parametrize(
    "options",
    [
        "-W 600",
        "-W600",
        "-c work_mem=1MB -W 600",
        "-e",
        "-fs",
        "-d 5",
        "-s",
        "-P",
        "--",
        "-",
        "-c",
        "-c work_mem",
        "--work_mem",
        "work_mem=1MB",
        "-v 3",
        "-ttpa",
        "-c post_auth_delay=600",
        "--post-auth-delay=600",
        "-cPOST_AUTH_DELAY=600",
        "-c local_preload_libraries=x",
        "-\\W 600",
    ],
)
def test_anything_else_is_refused(options: str) -> None:
    with pytest.raises(BadSetting):
        check_startup({"options": options})


@pytest.mark.parametrize("options", ["-c noisegate.withn=5%", "--noisegate.withn=5%", "-c Noisegate.Withn=5%"])
def test_a_setting_of_ours_that_there_is_not_is_refused(options: str) -> None:
    with pytest.raises(UnknownSetting, match="unrecognized configuration parameter") as refusal:
        check_startup({"options": options})
    assert refusal.value.hint == 'Did you mean "noisegate.within"?'

    check_startup({"options": "-c Noisegate.rows-per-unit=4"})


def test_settings_that_act_when_a_backend_starts_are_known(twin_cluster: Cluster) -> None:
    with psycopg.connect(twin_cluster.dsn()) as connection:
        rows = connection.execute("SELECT name FROM pg_settings WHERE context = 'backend'").fetchall()

    assert {name for (name,) in rows} <= AT_START
    for name in AT_START:
        with pytest.raises(BadSetting):
            check_startup({name: "600"})


@pytest.mark.parametrize("settings", [{"options": "-W 600"}, {"post_auth_delay": "600"}])
async def test_a_backend_is_not_left_asleep_in_the_place_of_a_session(
    stage: Stage, twin_cluster: Cluster, settings: dict[str, str]
) -> None:
    before = _backends(twin_cluster)

    refused = await RawClient.connect(stage.proxied, user=ANALYST, database=DATABASE, **settings)
    await refused.rest()

    assert _backends(twin_cluster) <= before


async def test_a_twin_that_is_still_being_made_is_said_to_be_away(stage: Stage) -> None:
    early = await RawClient.connect(stage.proxied, user="bob", database=DATABASE)  # the twin has no such role

    assert [error.sqlstate for error in errors(await early.rest())] == ["57P03"]


def _backends(cluster: Cluster) -> set[int]:
    with psycopg.connect(cluster.dsn()) as owner:
        rows = owner.execute("SELECT pid FROM pg_stat_activity WHERE usename = 'ada'").fetchall()
    return {process for (process,) in rows}
