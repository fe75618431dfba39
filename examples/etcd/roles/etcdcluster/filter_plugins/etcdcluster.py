# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Filters of the role etcdcluster: what a run has seen of a cluster becomes the one step that it takes."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]

# What a pod waits for that no other volume and no other member mends: its image, its spec, a Secret.
NOT_ITS_DATA = {
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ContainerCreating",
}

# When to look again after a step, if nothing else brings the next run. A step leads to the next one; a pod that becomes
# ready brings a run by itself; and nothing tells the operator of a member that goes away within its pod.
PAUSES = {"rest": "30s", "wait": "5s"}


def etcdcluster_owned(objects: list[Object], uid: str) -> list[Object]:
    """Return the objects that the custom resource owns, each once."""
    return list({there["metadata"]["uid"]: there for there in objects if owned(there["metadata"], uid)}.values())


def owned(metadata: Object, uid: str) -> bool:
    """Tell whether the object of the metadata has the owner."""
    return any(reference["uid"] == uid for reference in metadata.get("ownerReferences") or [])


def etcdcluster_members_pods(pods: list[Object], name: str, state: Object, claims: list[Object]) -> list[Object]:
    """Return the pods of the cluster's members. Others may have their labels.

    The StatefulSet is their controller. Where that was deleted, or is another one by now, they are known by the
    cluster's own claims, which they have mounted.
    """
    mine = {claim["metadata"]["name"] for claim in claims}

    def is_member(pod: Object) -> bool:
        metadata = pod["metadata"]
        if not re.fullmatch(rf"{re.escape(name)}-\d+", metadata["name"]):
            return False
        controller = next((r for r in metadata.get("ownerReferences") or [] if r.get("controller")), None)
        if controller and controller["uid"] == (state.get("metadata") or {}).get("uid"):
            return True
        volumes = (pod.get("spec") or {}).get("volumes") or []
        mounted = {
            volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume
        }
        of_the_set = not controller or (controller["kind"], controller["name"]) == ("StatefulSet", name)
        return of_the_set and f"data-{metadata['name']}" in mine & mounted

    return [pod for pod in pods if is_member(pod)]


def etcdcluster_secret_faults(lookups: list[Object], namespace: str) -> list[str]:
    """Say which Secrets are missing, and which lack a key: names only, nothing that a Secret holds."""
    faults = []
    for lookup in lookups:
        item = lookup["item"]
        secret = f"Secret {namespace}/{item['name']}, named by spec.{item['field']},"
        if "resources" not in lookup:
            faults.append(f"{secret} cannot be read")
        elif not lookup["resources"]:
            faults.append(f"{secret} does not exist")
        else:
            keys = lookup["resources"][0].get("data") or {}
            faults += [f'{secret} has no key "{key}"' for key in item["needs"] if key not in keys]
    return faults


def etcdcluster_version_fault(wanted: str, current: str) -> str:
    """Say why etcd cannot go from one version to the other, or nothing."""
    if not current or release(current) == release(wanted):
        return ""
    (old_major, old), (new_major, new) = release(current), release(wanted)
    if old_major != new_major or abs(new - old) > 1:
        via = f"{old_major}.{old + 1 if (new_major, new) > (old_major, old) else old - 1}"
        return (
            f"spec.version: the cluster runs {current}, and etcd goes one minor version at a time, up or down: "
            f"not to {wanted}, but to a version {via}.x first"
        )
    return ""


def release(version: str) -> tuple[int, int]:
    """Return major and minor version."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def etcdcluster_step(seen: Object) -> Object:
    """Return what one run does: {step, why, and what the step needs}.

    seen has name, size, version and what was found: pods, claims, set (the StatefulSet), members (etcd's own list, by
    a linearizable read; none where no quorum answered), statuses (of the members that answered, by pod), silent
    (why the others did not), memory (what
    earlier runs noted), backup (its status), dead_after and quorum_grace (seconds), available_since and now (times).
    """
    return Cluster(seen).step()


class Cluster:
    """What a run has seen, and what follows from it. The rules stand in the order in which they count."""

    def __init__(self, seen: Object) -> None:
        """Take what was seen."""
        self.seen = seen
        self.name, self.size, self.memory = seen["name"], int(seen["size"]), seen.get("memory") or {}
        self.pods = {pod["metadata"]["name"]: pod for pod in seen["pods"]}
        self.claims = {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in seen["claims"]}
        self.statuses = seen["statuses"]
        self.members = {self.pod_of(member): member for member in seen["members"]}
        self.voters = [name for name, member in self.members.items() if not member.get("isLearner")]
        self.learners = [name for name in self.members if name not in self.voters]
        self.now = moment(seen["now"])

    def pod_of(self, member: Object) -> str:
        """Return the pod of a member, as its peer URL names it; the URL itself where it is none of this cluster's."""
        url = (member.get("peerURLs") or ["(without a URL)"])[0]
        found = re.match(rf"https?://({re.escape(self.name)}-\d+)\.{re.escape(self.name)}\.", url)
        return found[1] if found else url

    def step(self) -> Object:
        """Return the first step that is due."""
        rules = (
            self.lost,
            self.strangers,
            self.version_fault,
            self.dead,
            self.learner,
            self.missing,
            self.surplus,
            self.stuck,
            self.unwell,
            self.backup,
            self.downgrade,
            self.outdated,
        )
        step = next((step for rule in rules if (step := rule())), None) or {
            "step": "rest",
            "why": "all is as it should be",
        }
        return {"phase": self.phase(step["step"]), "pause": PAUSES.get(step["step"], "1s"), **step, **self.report()}

    def report(self) -> Object:
        """Return what the status says, and what later runs have to know."""
        known = sorted(self.members or dict.fromkeys(self.pods), key=ordinal)
        return {
            "ready": [name for name in known if self.ready(name)],
            "unready": [name for name in known if not self.ready(name)],
            "version": self.oldest(),
            "alarms": sorted({error for status in self.statuses.values() for error in status.get("errors") or []}),
            "volumes": self.volumes(),
            "replicas": self.replicas(),
            "starts": self.starts(),
        }

    def silent(self) -> bool:
        """Tell whether there is a cluster, and no quorum of it answers."""
        return not self.members and self.memory.get("formed") == "true"

    def starts(self) -> str:
        """Return the version in which pods start from now on."""
        wanted = str(self.seen["version"])
        if self.silent() and not self.statuses and not self.stuck():
            # Nobody says what the data are like, and whether they may go to another version.
            spec = (self.seen.get("set") or {}).get("spec")
            return str(spec["template"]["spec"]["containers"][0]["image"]).rpartition(":v")[2] if spec else wanted
        return self.oldest() if self.backup() or self.downgrade() else wanted

    def oldest(self) -> str:
        """Return the oldest version that a member runs, if any answers."""
        versions = {status["version"] for status in self.statuses.values()}
        return min(versions, key=lambda version: [int(number) for number in version.split(".")[:3]], default="")

    def phase(self, step: str) -> str:
        """Return the word for what is going on: why the cluster is not as the spec says."""
        if step in ("lost", "refuse"):
            return "Failed"
        if step == "rest":
            return "Running"
        complete = int(self.memory.get("size") or 0)
        if not complete:
            return "Creating"
        if step in ("roll", "backup", "downgrade"):
            return "Upgrading"
        if complete != self.size:
            return "Scaling"
        return "Upgrading" if self.old() or self.memory.get("version") != self.seen["version"] else "Recovering"

    def ready(self, name: str) -> bool:
        """Tell whether a pod is there to stay and answers a linearizable read, as its readiness probe asks for."""
        pod = self.pods.get(name)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return False
        return bool(condition(pod)["status"] == "True")

    def volumes(self) -> dict[str, str]:
        """Return the volume's claim of each member: what was noted, or what a member that is ready has."""
        noted = self.memory.get("volumes") or {}
        if not self.members:
            return noted
        now = {name: self.claims.get(f"data-{name}", "") for name in self.members if self.ready(name)}
        return {name: uid for name in self.voters if (uid := noted.get(name) or now.get(name, ""))}

    def replicas(self) -> int:
        """Return how many pods there have to be, for the members and for one that joins."""
        names = [name for name in self.members if self.ours(name)]
        return max((ordinal(name) + 1 for name in names), default=int(self.memory.get("replicas") or 1))

    def ours(self, name: str) -> bool:
        """Tell whether a member is one of this cluster's pods."""
        return not name.startswith(("http", "("))

    def lost(self) -> Object | None:
        """Without a quorum nothing is changed: a wrong guess would cost the data."""
        if self.members:
            return None
        if self.memory.get("formed") != "true":
            seed = f"{self.name}-0"
            first = {"initial_cluster": f"{seed}={self.peer_url(seed)}"}
            return self.stuck() or {**wait(f"the first member starts{self.silence()}", pause="2s"), **first}
        if step := self.stuck():
            return step
        since = self.seen.get("available_since")
        if not since or (self.now - moment(since)).total_seconds() < self.seen["quorum_grace"]:
            return wait(f"no quorum answers; members may be starting{self.silence()}", phase="Recovering")
        down = ", ".join(sorted((name for name in self.pods if not self.ready(name)), key=ordinal)) or "no pod"
        return {
            "step": "lost",
            "why": f"no quorum of the {self.memory.get('replicas')} members answers ({down} not ready), so nothing is "
            "changed. Members whose volumes are there come back by themselves once their pods run. If a majority of "
            "the volumes is lost, create an EtcdRestore with a backup",
        }

    def silence(self) -> str:
        """Return what keeps a member that is ready from answering, a certificate mostly, or a pod from starting."""
        told = [f"{name}: {why}" for name, why in self.seen["silent"].items() if self.ready(name)]
        told += [f"{name}: {why}" for name, pod in sorted(self.pods.items()) if (why := unscheduled(pod))]
        return f" ({'; '.join(told)})" if told else ""

    def strangers(self) -> Object | None:
        """Do not touch a cluster to which somebody added members by hand."""
        strange = [name for name in self.members if not self.ours(name)]
        if not strange:
            return None
        ids = ", ".join(f"{int(self.members[name]['ID']):x} ({name})" for name in strange)
        return refuse(
            f"the cluster has members that are none of its pods, and is left alone: {ids}. Remove them by "
            "etcdctl member remove"
        )

    def version_fault(self) -> Object | None:
        """Refuse a version that etcd cannot go to."""
        fault = etcdcluster_version_fault(self.seen["version"], self.oldest())
        return refuse(fault) if fault else None

    def dead(self) -> Object | None:
        """Remove a member that will not come back, so that another one can take its place."""
        for name in sorted(self.members, key=ordinal, reverse=True):
            if (why := self.why_dead(name)) and self.quorum_without(name):
                return self.remove(name, why)
        return None

    def why_dead(self, name: str) -> str:
        """Say why a member will not come back, if so. One that never started has nothing to lose, and waits."""
        if self.ready(name) or not self.members[name].get("name"):
            return ""
        noted, pod = (self.memory.get("volumes") or {}).get(name), self.pods.get(name)
        if noted and self.claims.get(f"data-{name}") != noted:
            return "its volume is lost"
        if name in self.learners and name in self.statuses:
            return ""
        if pod and not waits_for(pod) & NOT_ITS_DATA and self.down_for(pod) > self.seen["dead_after"]:
            return f"it has not been ready for more than {self.seen['dead_after']} s"
        return ""

    def down_for(self, pod: Object) -> float:
        """Return for how many seconds a pod has not been ready. One that ends is ready to its last moment."""
        there, ready = pod["metadata"], condition(pod)
        since = there["deletionTimestamp"] if there.get("deletionTimestamp") else ready.get("lastTransitionTime")
        return (self.now - moment(since or there["creationTimestamp"])).total_seconds()

    def quorum_without(self, name: str) -> bool:
        """Tell whether those that are ready are a majority of the others."""
        others = [voter for voter in self.voters if voter != name]
        return sum(map(self.ready, others)) * 2 > len(others)

    def learner(self) -> Object | None:
        """Bring a member that was added to its end: a volume of its own, a start, the vote."""
        for name in self.learners:
            if ordinal(name) >= self.size:
                return self.remove(name, "spec.size is smaller")
            stale = self.memory.get("stale")
            if stale and self.claims.get(f"data-{name}") == stale:
                return {"step": "clear", "member": name, "why": f"{name} starts on a new volume", **self.joining(name)}
            if not self.members[name].get("name") or name not in self.statuses:
                return self.stuck() or {**wait(f"{name} starts{self.silence()}", pause="2s"), **self.joining(name)}
            return {
                **call("promote", "cluster/member/promote", {"ID": self.members[name]["ID"]}, f"{name} gets a vote"),
                **self.joining(name),
            }
        return None

    def missing(self) -> Object | None:
        """Add one member, once all others are well."""
        wanted = [f"{self.name}-{number}" for number in range(self.size)]
        absent = [name for name in wanted if name not in self.members]
        if not absent or self.unwell():
            return None
        name = absent[0]
        body = {"peerURLs": [self.peer_url(name)], "isLearner": True}
        return {**call("add", "cluster/member/add", body, f"{name} is added"), "member": name, **self.joining(name)}

    def joining(self, name: str) -> Object:
        """Return what the pods have to know while a member joins.

        Only the new member is listed by its name: etcd starts on an empty volume only where the list has its own name,
        so a member that lost its volume does not come back as one that has forgotten its votes.
        """
        others = [url for other, member in self.members.items() if other != name for url in member["peerURLs"]]
        cluster = [f"p{number}={url}" for number, url in enumerate(sorted(others))] + [f"{name}={self.peer_url(name)}"]
        stale = (
            self.memory.get("stale", "") if self.memory.get("joining") == name else self.claims.get(f"data-{name}", "")
        )
        return {"joining": name, "initial_cluster": ",".join(cluster), "stale": stale}

    def peer_url(self, name: str) -> str:
        """Return the address of a member for the others."""
        return str(self.seen["peer_url"]).replace("POD", name)

    def surplus(self) -> Object | None:
        """Remove the last member of a cluster that is to be smaller, once the others are well."""
        for name in sorted(self.voters, key=ordinal, reverse=True):
            if ordinal(name) >= self.size:
                others = [other for other in self.voters if other != name]
                return self.remove(name, "spec.size is smaller") if all(map(self.ready, others)) else None
        return None

    def remove(self, name: str, why: str) -> Object:
        """Return the step that removes a member."""
        return call("remove", "cluster/member/remove", {"ID": self.members[name]["ID"]}, f"{name} is removed: {why}")

    def stuck(self) -> Object | None:
        """Start a pod that is down as the spec says now, and say of what keeps a pod from starting."""
        for name, pod in sorted(self.pods.items()):
            if self.ready(name) or pod["metadata"].get("deletionTimestamp"):
                continue
            what = waits_for(pod) & NOT_ITS_DATA - {"ContainerCreating"}
            # Without a quorum a pod that runs is left alone: it may be what brings the quorum back.
            alone = bool(what) if self.silent() else all(self.ready(other) for other in self.voters if other != name)
            if self.is_old(name) and alone:
                return {"step": "roll", "member": name, "why": f"{name} is down, and starts as the spec says now"}
            if what:
                reasons = ", ".join(sorted(what))
                return refuse(
                    f"pod {name} cannot start: {reasons}: {message(pod)}. See spec.version and spec.repository"
                )
        return None

    def unwell(self) -> Object | None:
        """Wait for members that may come back."""
        down = [name for name in sorted(self.voters, key=ordinal) if not self.ready(name)]
        return wait(f"{', '.join(down)} is not ready{self.silence()}") if down else None

    def old(self) -> list[str]:
        """Return the pods that are not made of the StatefulSet as it is now."""
        return [name for name in sorted(self.pods, key=ordinal, reverse=True) if self.is_old(name)]

    def is_old(self, name: str) -> bool:
        """Tell whether a pod is not made of the StatefulSet as it is now."""
        revision = ((self.seen.get("set") or {}).get("status") or {}).get("updateRevision")
        return bool(revision) and self.pods[name]["metadata"]["labels"].get("controller-revision-hash") != revision

    def changes_version(self) -> bool:
        """Tell whether members run another version than the one that is asked for."""
        return any(status["version"] != self.seen["version"] for status in self.statuses.values())

    def backup(self) -> Object | None:
        """Have a backup before the first member of another version starts, where the spec asks for one."""
        backup = self.seen["backup"]
        if backup.get("succeeded") or not self.changes_version():
            return None
        if backup.get("reason"):
            return refuse(f"spec.backupBeforeUpgrade: no member starts in another version yet: {backup['reason']}")
        return {"step": "backup", "why": f"a backup comes before {self.seen['version']}", "pause": "2s"}

    def downgrade(self) -> Object | None:
        """Tell etcd of a downgrade first: it brings its data into the older form. Call that off if need be."""
        newest = max((release(status["version"]) for status in self.statuses.values()), default=None)
        told = [status.get("downgradeInfo") or {} for status in self.statuses.values()]
        wanted = release(self.seen["version"])
        if not newest or (newest <= wanted and not any(info.get("enabled") for info in told)):
            return None
        if newest <= wanted:
            return call("downgrade", "maintenance/downgrade", {"action": "CANCEL"}, "the downgrade is called off")
        to = ".".join(map(str, wanted))
        if not all(info.get("enabled") for info in told):
            return call(
                "downgrade",
                "maintenance/downgrade",
                {"action": "ENABLE", "version": to},
                f"etcd is told of the downgrade to {to}",
            )
        if all(
            release(status.get("storageVersion") or status["version"]) == wanted for status in self.statuses.values()
        ):
            return None
        return wait(f"etcd brings its data into the form of {to}", phase="Upgrading")

    def outdated(self) -> Object | None:
        """Restart one pod, while all are well: the leader last, so that it leads as long as it can."""
        state = self.seen.get("set") or {}
        if (state.get("status") or {}).get("observedGeneration") != (state.get("metadata") or {}).get("generation"):
            return wait("the StatefulSet is being looked at")
        old = self.old()
        if not old:
            return None
        leaders = {status["leader"] for status in self.statuses.values()}
        name = next((name for name in old if self.members.get(name, {}).get("ID") not in leaders), old[0])
        return {"step": "roll", "member": name, "why": f"{name} is restarted as the spec says now"}


def wait(why: str, **more: str) -> Object:
    """Return the step that only waits."""
    return {"step": "wait", "why": why, **more}


def call(step: str, path: str, body: Object, why: str) -> Object:
    """Return a step that asks etcd for something."""
    return {"step": step, "path": path, "body": body, "why": why}


def refuse(why: str) -> Object:
    """Return the step that only says what is wrong."""
    return {"step": "refuse", "why": why}


def ordinal(name: str) -> int:
    """Return the number at the end of a pod's name."""
    found = re.search(r"-(\d+)$", name)
    return int(found[1]) if found else -1


def moment(text: str) -> datetime:
    """Return a time of Kubernetes."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def condition(pod: Object) -> Object:
    """Return whether a pod is ready, and since when."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == "Ready"), {"status": "False"})


def unscheduled(pod: Object) -> str:
    """Return why a pod has no node, such as "Insufficient cpu"; nothing where it has one."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return next((str(c.get("message", "")) for c in conditions if c.get("reason") == "Unschedulable"), "")


def waits_for(pod: Object) -> set[str]:
    """Return why containers of a pod wait."""
    states = [c.get("state") or {} for c in (pod.get("status") or {}).get("containerStatuses") or []]
    return {state["waiting"].get("reason", "") for state in states if "waiting" in state}


def message(pod: Object) -> str:
    """Return what the kubelet says of a container that waits."""
    states = [c.get("state") or {} for c in (pod.get("status") or {}).get("containerStatuses") or []]
    return next((state["waiting"].get("message", "") for state in states if "waiting" in state), "")


class FilterModule:
    """What Ansible looks for in a file of filters."""

    def filters(self) -> dict[str, Any]:
        """Return them by name."""
        filters = (
            etcdcluster_members_pods,
            etcdcluster_owned,
            etcdcluster_secret_faults,
            etcdcluster_step,
            etcdcluster_version_fault,
        )
        return {f.__name__: f for f in filters}
