"""A sandbox's network: rules, decisions, ports."""

from __future__ import annotations

import httpx
import pytest

from eyot import AsyncClient, Client, EgressRules, Invalid, Sandbox

DIAL = "curl --silent --max-time 5 --output /dev/null http://192.0.2.1/; true"


def test_rules_are_replaced_and_what_they_refuse_is_told(client: Client) -> None:
    with client.create(network="egress", egress={"allow": ["example.com"]}) as sandbox:
        assert (sandbox.egress_rules().allow, sandbox.egress_rules().deny) == (["example.com"], [])
        sandbox.set_egress_rules(deny=["192.0.2.0/24"])
        assert (sandbox.egress_rules().allow, sandbox.egress_rules().deny) == ([], ["192.0.2.0/24"])
        sandbox.exec(DIAL, timeout_ms=20_000)
        decisions = list(sandbox.egress_decisions())
        assert decisions[-1].host == "192.0.2.1" and decisions[-1].port == 80 and decisions[-1].verdict == "refused"
        assert list(sandbox.egress_decisions(last=1)) == decisions[-1:]


def test_following_decisions_tells_what_comes(client: Client) -> None:
    with client.create(network="egress", egress={"deny": ["192.0.2.0/24"]}) as sandbox:
        sandbox.start(DIAL)
        decision = next(sandbox.egress_decisions(follow=True))
        assert decision.host == "192.0.2.1" and decision.number == 1


def test_a_rule_that_is_none_is_refused(client: Client) -> None:
    with client.create(network="egress") as sandbox, pytest.raises(Invalid):
        sandbox.set_egress_rules(allow=["http://not a rule"])


def test_a_sandbox_without_a_network_has_no_rules(sandbox: Sandbox) -> None:
    with pytest.raises(Invalid):
        sandbox.egress_rules()


async def test_rules_and_decisions_work_in_async_code(async_client: AsyncClient) -> None:
    async with await async_client.create(network="egress", egress={"deny": ["192.0.2.0/24"]}) as sandbox:
        await sandbox.set_egress_rules(allow=["example.com"])
        assert (await sandbox.egress_rules()).allow == ["example.com"]
        await sandbox.start(DIAL)
        async for decision in sandbox.egress_decisions(follow=True):
            assert decision.verdict == "refused"
            break


def test_a_sandbox_that_publishes_no_ports_has_none(sandbox: Sandbox) -> None:
    assert sandbox.published_ports() == []


SERVER = "python3 -m http.server 8000 --bind 127.0.0.1"


def test_a_port_is_seen_as_a_web_page_by_who_has_the_token(client: Client, server: str) -> None:
    transport = httpx.HTTPTransport(uds=server.removeprefix("unix:"))
    with httpx.Client(transport=transport) as browser, client.create(files={"hello.txt": "from inside"}) as sandbox:
        sandbox.start(SERVER)
        sandbox.exec("until curl --silent http://127.0.0.1:8000/ >/dev/null; do sleep 0.05; done", timeout_ms=20_000)
        preview = sandbox.preview(8000, ttl_ms=60_000)
        assert preview.port == 8000 and preview.token is not None and not preview.public
        address = f"http://localhost/preview/{preview.sandbox}/8000/hello.txt"
        assert browser.get(address).status_code == 401
        seen = browser.get(address, headers={preview.header: preview.token})
        assert (seen.status_code, seen.text) == (200, "from inside")
        sandbox.end_previews(8000)
        assert browser.get(address, headers={preview.header: preview.token}).status_code == 401


def test_rules_are_changed_with_labels_or_not_at_all(client: Client) -> None:
    with client.create(network="egress", egress={"deny": ["192.0.2.0/24"]}) as sandbox:
        with pytest.raises(Invalid):
            sandbox.update(egress={"allow": ["example.com"]}, lifecycle={"ttl_ms": 0})
        assert sandbox.egress_rules().allow == []
        sandbox.update(egress={"allow": ["example.com"]}, labels={"a": "1"})
        assert sandbox.egress_rules() == EgressRules(allow=["example.com"], deny=[])
