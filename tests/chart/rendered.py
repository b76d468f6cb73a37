#!/usr/bin/python3
"""Checks of the rendered Helm chart: security, times of a stop, addresses, and refused values."""

import json
import pathlib
import subprocess
import sys
import unittest

import yaml

CHART = sys.argv.pop(1) if len(sys.argv) > 1 else "deploy/helm/samovar"


def helm(*arguments):
    command = ["helm", "template", "shop", CHART, "--namespace", "shop", *arguments]
    command += ["--kube-version", "1.34.0"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def render(*arguments):
    done = helm(*arguments)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    found = [document for document in yaml.safe_load_all(done.stdout) if document]
    return {(document["kind"], document["metadata"]["name"]): document for document in found}


def full():
    return render("--values", f"{CHART}/ci/full-values.yaml")


def of(resources, kind):
    return [resource for (is_kind, _), resource in resources.items() if is_kind == kind]


def pod_of(resources):
    return of(resources, "Deployment")[0]["spec"]["template"]["spec"]


def environment(resources):
    entries = pod_of(resources)["containers"][0]["env"]
    return {entry["name"]: entry.get("value") for entry in entries}


class Security(unittest.TestCase):
    """The rules of the pod security standard "restricted"."""

    def test_every_pod_is_restricted(self):
        for resources in [render(), full()]:
            pods = [pod_of(resources)] + [pod["spec"] for pod in of(resources, "Pod")]
            self.assertEqual(len(pods), 2)
            for pod in pods:
                self.check(pod)

    def check(self, pod):
        context = pod["securityContext"]
        self.assertIs(context["runAsNonRoot"], True)
        self.assertGreater(context["runAsUser"], 0)
        self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertIs(pod["automountServiceAccountToken"], False)
        for key in ["hostNetwork", "hostPID", "hostIPC"]:
            self.assertNotIn(key, pod)
        for volume in pod.get("volumes", []):
            self.assertTrue(
                {"emptyDir", "configMap", "persistentVolumeClaim"} & volume.keys(), volume
            )
        for container in pod["containers"]:
            self.assertEqual(
                container["securityContext"],
                {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
            )
            for port in container.get("ports", []):
                self.assertGreater(port["containerPort"], 1023)
                self.assertNotIn("hostPort", port)
            self.assertIn("memory", container["resources"]["limits"])

    def test_public_service_has_no_way_to_the_admin_listener(self):
        ports = full()["Service", "shop-samovar"]["spec"]["ports"]
        self.assertEqual([port["targetPort"] for port in ports], ["http"])


class Rollout(unittest.TestCase):
    def test_termination_period_covers_delay_drain_and_grace(self):
        resources = render(
            "--set", "shutdown.delaySeconds=7,shutdown.drainSeconds=120,shutdown.graceSeconds=9"
        )
        pod = pod_of(resources)
        self.assertEqual(pod["terminationGracePeriodSeconds"], 137)
        hook = pod["containers"][0]["lifecycle"]["preStop"]
        self.assertEqual(hook, {"exec": {"command": ["sleep", "7"]}})
        self.assertEqual(environment(resources)["SAMOVAR_DRAIN_TIMEOUT"], "120s")

    def test_rolling_update_never_has_fewer_pods(self):
        strategy = of(render(), "Deployment")[0]["spec"]["strategy"]["rollingUpdate"]
        self.assertEqual(strategy["maxUnavailable"], 0)

    def test_probes_use_the_health_endpoints(self):
        container = pod_of(render())["containers"][0]
        probes = {
            "startupProbe": "/ready",
            "readinessProbe": "/ready",
            "livenessProbe": "/health",
        }
        for probe, path in probes.items():
            self.assertEqual(container[probe]["httpGet"], {"path": path, "port": "admin"})

    def test_changed_settings_start_a_rollout(self):
        templates = [
            of(render("--set", f"config={text}"), "Deployment")[0]["spec"]["template"]
            for text in ["workers = 1", "workers = 2"]
        ]
        self.assertNotEqual(*[template["metadata"]["annotations"] for template in templates])

    def test_settings_file_is_in_the_working_directory(self):
        mounts = pod_of(full())["containers"][0]["volumeMounts"]
        found = [mount for mount in mounts if mount["name"] == "config"]
        self.assertEqual(found[0]["mountPath"], "/app/samovar.toml")

    def test_disruption_budget_selects_the_pods(self):
        for resources in [render(), full()]:
            labels = of(resources, "Deployment")[0]["spec"]["template"]["metadata"]["labels"]
            for kind, selector in [
                ("PodDisruptionBudget", lambda spec: spec["selector"]["matchLabels"]),
                ("Service", lambda spec: spec["selector"]),
                ("NetworkPolicy", lambda spec: spec["podSelector"]["matchLabels"]),
            ]:
                for resource in of(resources, kind):
                    self.assertLessEqual(selector(resource["spec"]).items(), labels.items())

    def test_pod_of_the_test_gets_no_requests(self):
        resources = render()
        pod = of(resources, "Pod")[0]["metadata"]["labels"]
        selector = resources["Service", "shop-samovar"]["spec"]["selector"]
        self.assertFalse(selector.items() <= pod.items())


class Scaling(unittest.TestCase):
    def test_autoscaler_owns_the_number_of_pods(self):
        resources = full()
        self.assertNotIn("replicas", of(resources, "Deployment")[0]["spec"])
        spec = of(resources, "HorizontalPodAutoscaler")[0]["spec"]
        self.assertEqual(spec["scaleTargetRef"]["name"], "shop-samovar")
        kinds = [metric["type"] for metric in spec["metrics"]]
        self.assertEqual(kinds, ["Pods", "Pods", "Resource"])

    def test_metrics_of_the_autoscaler_are_those_of_the_adapter(self):
        text = pathlib.Path(CHART).parent.joinpath("prometheus-adapter.yaml").read_text("utf-8")
        rules = yaml.safe_load(text)["rules"]["custom"]
        spec = of(full(), "HorizontalPodAutoscaler")[0]["spec"]
        used = {metric["pods"]["metric"]["name"] for metric in spec["metrics"] if "pods" in metric}
        self.assertEqual(used, {rule["name"]["as"] for rule in rules})

    def test_autoscaler_without_metric_is_refused(self):
        done = helm("--set", "autoscaling.enabled=true,autoscaling.busyPercent=0")
        self.assertIn("autoscaling needs", done.stderr)


class Monitoring(unittest.TestCase):
    def test_service_monitor_finds_the_metrics_service_with_the_token(self):
        resources = full()
        monitor = of(resources, "ServiceMonitor")[0]["spec"]
        service = resources["Service", "shop-samovar-metrics"]
        wanted = monitor["selector"]["matchLabels"].items()
        self.assertLessEqual(wanted, service["metadata"]["labels"].items())
        site = resources["Service", "shop-samovar"]["metadata"]["labels"]
        self.assertFalse(wanted <= site.items())
        endpoint = monitor["endpoints"][0]
        self.assertIn(endpoint["port"], [port["name"] for port in service["spec"]["ports"]])
        self.assertEqual(
            endpoint["authorization"]["credentials"], {"name": "shop-admin", "key": "token"}
        )

    def test_generated_token_is_long_enough(self):
        secret = of(render(), "Secret")[0]
        self.assertGreaterEqual(len(secret["data"]["token"]), 40)
        self.assertEqual(of(full(), "Secret"), [])


class Policy(unittest.TestCase):
    def test_egress_is_open_closed_or_listed(self):
        enabled = ["--set", "networkPolicy.enabled=true"]
        opened = of(render(*enabled), "NetworkPolicy")[0]["spec"]
        self.assertEqual(opened["policyTypes"], ["Ingress"])
        closed = render(*enabled, "--set-json", "networkPolicy.egress=[]")
        spec = of(closed, "NetworkPolicy")[0]["spec"]
        self.assertEqual((spec["policyTypes"], spec.get("egress")), (["Ingress", "Egress"], None))
        listed = of(full(), "NetworkPolicy")[0]["spec"]["egress"]
        self.assertEqual(listed, [{"ports": [{"port": 5432}]}])


class Values(unittest.TestCase):
    def test_invalid_values_are_refused(self):
        for values in [
            {"replica": 3},
            {"workers": 0},
            {"workers": "many"},
            {"environment": {"SAMOVAR_LISTEN": ":80"}},
            {"environment": {"a b": "c"}},
            {"shutdown": {"drainSeconds": 0}},
            {"admin": {"port": 8080}},
            {"admin": {"port": 80}},
            {"image": {"digest": "sha256:1"}},
            {"runAsUser": 0},
            {"ingress": {"hosts": ["shop.example"]}},
            {"autoscaling": {"busyPercent": 101}},
            {"networkPolicy": {"egress": "all"}},
        ]:
            pairs = [f"{key}={json.dumps(value)}" for key, value in values.items()]
            done = helm("--set-json", ",".join(pairs))
            self.assertNotEqual(done.returncode, 0, values)
            self.assertIn("values don't meet the specifications", done.stderr, values)

    def test_numbers_of_the_environment_stay_as_written(self):
        done = render("--set", "environment.N=8080,environment.LARGE=12345678,environment.B=true")
        found = environment(done)
        self.assertEqual([found["N"], found["LARGE"], found["B"]], ["8080", "12345678", "true"])

    def test_every_value_has_a_schema(self):
        folder = pathlib.Path(CHART)
        values = yaml.safe_load(folder.joinpath("values.yaml").read_text("utf-8"))
        schema = json.loads(folder.joinpath("values.schema.json").read_text("utf-8"))
        self.assertEqual(values.keys() | {"global"}, schema["properties"].keys())


if __name__ == "__main__":
    unittest.main()
