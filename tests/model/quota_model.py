#!/usr/bin/env python3
"""Every interleaving of small runs of the TenantQuota protocol (docs/quota.md), and a counterexample for each rule left out.

    quota_model.py                      all scenarios, with every rule: no violation may be found
    quota_model.py --scenario moves     one of them
    quota_model.py --break no-renew     the scenario that needs this rule, without it: prints the way to a violation, exits 1
    quota_model.py --self-test          all scenarios whole, then each rule left out in turn, which must be found

What is modelled: users who create, update, move and delete Agents; an API server that calls the webhook, stores by
compare-and-set, calls again on a conflict, or gives up; any number of webhooks (each reservation is one compare-and-set on the
quota, so their number does not matter); the first count of a new quota; quotas deleted and made again; two controllers, each
with a Store that lags behind as it likes, of which either may write at any time.

Demand has one dimension here. What is checked in every state, for each tenant:
    stored demand <= limit                               nothing was over-committed
    stored demand <= used + charge(reservations)         the quota's own books say so, once it was counted
"""
import argparse
import sys
import time
from collections import deque, namedtuple
from types import SimpleNamespace

# The Agents as the log of their writes; the resourceVersion of an event is its place in the log, counted from 1.
Event = namedtuple("Event", "uid name tenant demand")        # demand None: deleted
# version: of the quota object. through: the version of the Agents that `used` was taken at. counted: a first count was made.
Quota = namedtuple("Quota", "uid version used reservations counted through finalizer deleting")
# asked: the quota's version that the latest ask for this key was written over; each ask renews it, no two have the same.
Reservation = namedtuple("Reservation", "name uid from_version amount asked")
# One admission request; old is the Event it replaces with its version, or None. phase: called, reserved, (listed, …)
Request = namedtuple("Request", "call uid name tenant demand old old_version phase")
# base: the Store began with the state at this version, what was deleted before was never seen. at: as far as it has come.
# note: (tenant, {(key, asked)}, {calls in flight then}): the reservations known since then.
Controller = namedtuple("Controller", "base at note listed")
# A controller has read the quota, and after that has listed the Agents. droppable: what it had known for long enough then.
Listed = namedtuple("Listed", "quota tenant at droppable")
State = namedtuple("State", "log quotas requests controllers calls uids started deletions recounts")

# demands: what an Agent may ask for. counted: the quota begins with its first count made; else there was an Agent before it.
SCENARIOS = {
    name: SimpleNamespace(**{"names": 1, "demands": (1, 2), "tenants": 1, "requests": 3, "controllers": 1, "recounts": 1,
                             "deletions": 0, "limit": 3, "counted": True, **more})
    for name, more in {
        "plain": {"recounts": 2},
        "growth": {"demands": (1, 2, 3)},
        "names": {"names": 2},
        "moves": {"tenants": 2, "limit": 2},
        "first": {"names": 2, "limit": 2, "counted": False},
        "deletion": {"deletions": 1, "limit": 2},
        "handover": {"controllers": 2, "recounts": 2, "requests": 2, "limit": 2},
    }.items()
}
# rule left out -> (the scenario that needs it, what is done instead)
BREAKS = {
    "compare-and-set": ("plain", "a recount is written without the quota's version"),
    "from-version": ("plain", "the key of an update is the object's uid alone, and any version of the object retires it"),
    "later": ("growth", "an update is retired by any version other than the old one, older ones included"),
    "maximum": ("growth", "a key that is there already is skipped, whatever it asks for now"),
    "consistent-list": ("plain", "a reservation is dropped by what the Store shows"),
    "wait": ("plain", "a reservation is dropped by the first list, however young it is"),
    "no-renew": ("plain", "asking again for a key leaves its age as it is"),
    "through": ("handover", "a recount may come from a Store that is older than the last recount's"),
    "first-count": ("first", "a new quota is taken to be unused"),
    "finalizer": ("deletion", "a quota goes at once, with its reservations"),
}


def explore(scenario, broken="", states_max=None):
    """(states seen, None), or (states seen, (message, way)) at the first violation."""
    s = SCENARIOS[scenario]
    tenants, names = range(s.tenants), range(s.names)

    def versions(state):
        """name -> (version, Event) of what is stored."""
        now = {}
        for version, event in enumerate(state.log, 1):
            now[event.name] = (version, event)
        return {name: found for name, found in now.items() if found[1].demand is not None}

    def stored(log, tenant):
        last = {event.name: event for event in log}
        return sum(e.demand for e in last.values() if e.demand is not None and e.tenant == tenant)

    def charge(reservations):
        """Updates add up; of the pending creates of one name only one can be stored, so the largest counts."""
        creates = {}
        for r in reservations:
            if r.from_version == 0:
                creates[r.name] = max(creates.get(r.name, 0), r.amount)
        return sum(creates.values()) + sum(r.amount for r in reservations if r.from_version)

    def key_of(r):
        return (r.uid, r.from_version)

    def with_reservation(quota, request, rise, over):
        """over: the version that is written over."""
        from_version = request.old_version
        if broken == "from-version" and from_version:
            from_version = 1
        same = [r for r in quota.reservations if key_of(r) == (request.uid, from_version)]
        amount, asked = rise, over
        if same:
            amount = max(rise, same[0].amount)
            if broken == "maximum":
                amount = same[0].amount
            if broken == "no-renew":
                asked = same[0].asked
        made = Reservation(request.name, request.uid, from_version, amount, asked)
        return (quota.reservations - frozenset(same)) | {made}

    def seen_by(state, controller):
        """uid -> latest version that a Store with this history knows."""
        seen = {}
        alive = {}
        for version, event in enumerate(state.log[:controller.base], 1):
            alive[event.name] = (version, event)
        for version, event in alive.values():
            if event.demand is not None:
                seen[event.uid] = version
        for version, event in enumerate(state.log[:controller.at], 1):
            if version > controller.base:
                seen[event.uid] = version
        return seen

    def is_retired(r, seen):
        version = seen.get(r.uid)
        if version is None:
            return False
        if r.from_version == 0 or broken == "from-version":
            return True
        return version != r.from_version if broken == "later" else version > r.from_version

    def recounted(quota, used, keep, through):
        return quota._replace(version=quota.version + 1, used=used, reservations=frozenset(keep), counted=True, through=through)

    def put(items, at, item):
        return items[:at] + (item,) + items[at + 1:]

    def moves(state):
        present = versions(state)
        # Users.
        if state.started < s.requests:
            for name in names:
                old_version, old = present.get(name, (0, None))
                started = dict(started=state.started + 1, calls=state.calls + 1)
                for tenant in tenants:
                    for demand in s.demands:
                        if old is None:
                            request = Request(state.calls, state.uids, name, tenant, demand, None, 0, "called")
                            yield (f"create {name} of tenant {tenant}, demand {demand}, uid {state.uids}",
                                   state._replace(requests=state.requests + (request,), uids=state.uids + 1, **started))
                        elif (tenant, demand) != (old.tenant, old.demand):
                            request = Request(state.calls, old.uid, name, tenant, demand, old, old_version, "called")
                            yield (f"update {name} from version {old_version} to tenant {tenant}, demand {demand}",
                                   state._replace(requests=state.requests + (request,), **started))
                if old is not None:
                    yield f"delete {name}", state._replace(log=state.log + (old._replace(demand=None),), started=state.started + 1)
        if state.deletions < s.deletions:
            for tenant in tenants:
                quota = state.quotas[tenant]
                if quota is not None and not quota.deleting:
                    gone = None if broken == "finalizer" or not quota.finalizer else quota._replace(
                        deleting=True, version=quota.version + 1)
                    yield f"delete the quota of {tenant}", state._replace(quotas=put(state.quotas, tenant, gone),
                                                                       deletions=state.deletions + 1)
        for tenant in tenants:
            if state.quotas[tenant] is None:
                fresh = Quota(state.uids, 0, 0, frozenset(), broken == "first-count", 0, False, False)
                yield f"make the quota of {tenant} again", state._replace(quotas=put(state.quotas, tenant, fresh),
                                                                       uids=state.uids + 1)
        # The API server and the webhook.
        for at, request in enumerate(state.requests):
            rest = state.requests[:at] + state.requests[at + 1:]
            quota = state.quotas[request.tenant]
            what = f"call {request.call}"
            if request.phase == "reserved":
                yield f"{what}: given up", state._replace(requests=rest)
                version, current = present.get(request.name, (0, None))
                event = Event(request.uid, request.name, request.tenant, request.demand)
                if current is None and request.old is None or current is not None and version == request.old_version:
                    yield f"{what}: stored as version {len(state.log) + 1}", state._replace(log=state.log + (event,), requests=rest)
                elif request.old is not None and current is not None and current.uid == request.uid:
                    again = request._replace(call=state.calls, old=current, old_version=version, phase="called")
                    yield f"{what}: conflict, called again as {state.calls}", state._replace(requests=rest + (again,),
                                                                                        calls=state.calls + 1)
                continue
            yield f"{what}: lost", state._replace(requests=rest)
            whole = request.old is None or request.old.tenant != request.tenant
            rise = request.demand if whole else request.demand - request.old.demand
            go = request._replace(phase="reserved")
            if rise <= 0:
                yield f"{what}: allowed, nothing rises", state._replace(requests=put(state.requests, at, go))
            elif quota is None or quota.deleting:
                continue                                         # denied: the same as lost
            elif not quota.counted:
                if request.phase == "called":
                    listing = request._replace(phase=("listed", quota.uid, quota.version, len(state.log)))
                    yield f"{what}: never counted, lists at {len(state.log)}", state._replace(requests=put(state.requests, at, listing))
                elif request.phase[1:3] == (quota.uid, quota.version):
                    length = request.phase[3]
                    first = recounted(quota, stored(state.log[:length], request.tenant), (), length)
                    if first.used + rise <= s.limit:
                        first = first._replace(finalizer=True, reservations=with_reservation(first, request, rise, quota.version))
                        yield f"{what}: first count, reserves {rise}", state._replace(
                            quotas=put(state.quotas, request.tenant, first), requests=put(state.requests, at, go))
            elif quota.used + charge(with_reservation(quota, request, rise, quota.version)) <= s.limit:
                more = quota._replace(version=quota.version + 1, finalizer=True, reservations=with_reservation(quota, request, rise, quota.version))
                yield f"{what}: reserves {rise} of tenant {request.tenant}", state._replace(
                    quotas=put(state.quotas, request.tenant, more), requests=put(state.requests, at, go))
        # The controllers.
        flying = {r.call for r in state.requests}
        for at, controller in enumerate(state.controllers):
            def as_controller(**changes):
                return dict(controllers=put(state.controllers, at, controller._replace(**changes)))
            who = f"controller {at}"
            if controller.at < len(state.log):
                yield f"{who}: sees version {controller.at + 1}", state._replace(**as_controller(at=controller.at + 1))
            for tenant in tenants:
                quota = state.quotas[tenant]
                if quota is None or not quota.counted:
                    continue
                listed = controller.listed
                if listed and listed.tenant == tenant:
                    read = listed.quota
                    if quota == read or broken == "compare-and-set" and quota.uid == read.uid:
                        seen = seen_by(state, Controller(listed.at, listed.at, None, None))
                        keep = [r for r in read.reservations
                                if not is_retired(r, seen) and (key_of(r), r.asked) not in listed.droppable]
                        yield f"{who}: writes the recount of its list at {listed.at}", state._replace(
                            quotas=put(state.quotas, tenant, recounted(quota, stored(state.log[:listed.at], tenant), keep,
                                                                       listed.at)),
                            **as_controller(listed=None, note=None))
                    else:
                        yield f"{who}: conflict", state._replace(**as_controller(listed=None))
                if controller.note is None and quota.reservations and state.recounts < s.recounts:
                    known = frozenset((key_of(r), r.asked) for r in quota.reservations)
                    calls = frozenset(r.call for r in state.requests)
                    yield f"{who}: begins to wait for the reservations of {tenant}", state._replace(
                        **as_controller(note=(tenant, known, calls)))
                if state.recounts < s.recounts:
                    # From the Store, which may be old.
                    if controller.at >= quota.through or broken == "through":
                        seen = seen_by(state, controller)
                        keep = [r for r in quota.reservations if not is_retired(r, seen)]
                        if broken == "consistent-list" and controller.note and not controller.note[2] & flying:
                            keep = [r for r in keep if (key_of(r), r.asked) not in controller.note[1]]
                        yield f"{who}: recount from its Store at {controller.at}", state._replace(
                            recounts=state.recounts + 1, quotas=put(state.quotas, tenant, recounted(
                                quota, stored(state.log[:controller.at], tenant), keep,
                                max(controller.at, quota.through))))
                    # By a list: what was noted may be dropped once all calls of that time have ended.
                    if listed is None:
                        note, droppable = controller.note, frozenset()
                        if note and note[0] == tenant and (broken == "wait" or not note[2] & flying):
                            droppable = note[1]
                        yield f"{who}: read the quota, then listed at {len(state.log)}", state._replace(
                            recounts=state.recounts + 1,
                            **as_controller(listed=Listed(quota, tenant, len(state.log), droppable)))
                if quota.deleting and not quota.reservations:
                    yield f"{who}: lets the quota of {tenant} go", state._replace(quotas=put(state.quotas, tenant, None))

    def violation(state):
        for tenant in tenants:
            demand, quota = stored(state.log, tenant), state.quotas[tenant]
            if demand > s.limit:
                return f"tenant {tenant} stores {demand}, its limit is {s.limit}"
            if quota is not None and quota.counted and demand > quota.used + charge(quota.reservations):
                return (f"tenant {tenant} stores {demand}, its quota says used {quota.used}, "
                        f"reservations {sorted(quota.reservations)}")
        return None

    quotas = tuple(Quota(t + 1, 0, 0, frozenset(), s.counted or broken == "first-count", 0, False, False) for t in tenants)
    log = () if s.counted else (Event(90, 0, 0, 1),)             # there was an Agent before the quota
    first = State(log, quotas, (), tuple(Controller(0, 0, None, None) for _ in range(s.controllers)), 1, 100, 0, 0, 0)
    came_from, queue = {first: None}, deque([first])
    while queue:
        state = queue.popleft()
        found = violation(state)
        if found:
            way = []
            while came_from[state]:
                label, state = came_from[state]
                way.append(label)
            return len(came_from), (found, way[::-1])
        for label, following in moves(state):
            if following not in came_from:
                came_from[following] = (label, state)
                queue.append(following)
        if states_max and len(came_from) > states_max:
            return len(came_from), None
    return len(came_from), None


def report(scenario, broken="", states_max=None):
    start = time.monotonic()
    states, found = explore(scenario, broken, states_max)
    name = f"{scenario} without {broken}" if broken else scenario
    print(f"{name}: {states} states, {time.monotonic() - start:.1f} s: " + (found[0] if found else "no violation"), flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", choices=SCENARIOS)
    parser.add_argument("--break", dest="broken", choices=BREAKS, help="leave a rule out")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--states", type=int, help="stop a scenario at so many states")
    options = parser.parse_args()
    if options.broken and not options.self_test:
        scenario, instead = BREAKS[options.broken]
        print(f"{options.broken}: {instead}")
        found = report(options.scenario or scenario, options.broken, options.states)
        print("".join(f"  {step}\n" for step in found[1]) if found else "", end="")
        return 1 if found else 0
    wrong = [name for name in ([options.scenario] if options.scenario else SCENARIOS) if report(name, "", options.states)]
    if options.self_test:
        wrong += [rule for rule, (scenario, _) in BREAKS.items() if not report(scenario, rule, None)]
    if wrong:
        print("not as it must be:", ", ".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
