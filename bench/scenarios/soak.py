#!/usr/bin/python3
"""A day in the shop: logins, forms and uploads by 16 visitors. Checks for crossed sessions and for growth.

  bench/scenarios/soak.py                       20,000 requests to each model
  bench/scenarios/soak.py --requests 100000     for publication
  bench/scenarios/soak.py --models resident --seed 7

The application is tests/apps/symfony-shop, unchanged, on SQLite. Each visitor checks every response:
name, language, flash message, cart and notes must be the visitor's own, and no other visitor's name
may appear. Memory is measured at rest, as in growth.py. Exits with 1 if a response was wrong.
"""

import concurrent.futures
import functools
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import control, growth, report, scenario, servers, shopper  # noqa: E402: the suite is next to this folder
from suite.launch import Running, free_port  # noqa: E402

REQUESTS = 20_000
READINGS = 20
# Figures of Samovar's status, kept with each reading.
IMAGE_FIGURES = ("hot_pages", "rollbacks_total", "refork_total")
FAULTS_MAX = 10
INSTALL_SECONDS_MAX = 120
SHOP = servers.ROOT / "tests/apps/symfony-shop"
RUNTIME = "Samovar\\Runtime\\SymfonyRuntime"
MODELS = ("resident", "checkpoint")


def main():
    made = scenario.parser(__doc__, rounds=0, connections=16)
    made.add_argument("--requests", type=scenario.positive, default=REQUESTS, metavar="N",
                      help="requests to each model: %(default)s")
    scenario.add_choice(made, "--models", MODELS)
    made.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the visitors' orders: %(default)s")
    asked = made.parse_args()
    if asked.connections not in range(1, 101):
        made.error("--connections: 1 to 100, one for each visitor")
    faults = []
    scenario.run("soak", asked, functools.partial(measure_all, faults), table)
    sys.exit(1 if faults else 0)


def measure_all(faults, lab, results):
    for model in lab.asked.models.split(","):
        result = results[model] = {"error": None, "faults": [], "readings": [], "status": None}
        try:
            soak(lab, model, result)
        except (*scenario.ERRORS, subprocess.SubprocessError) as error:
            scenario.note_error(lab.progress, model, result, error)
        faults += result["faults"] + ([result["error"]] if result["error"] else [])


def soak(lab, model, result):
    """One model, from the installation to the last reading."""
    site = servers.Site("soak", install(lab, model) / "public", lab.folder / model / "server", free_port(),
                        lab.asked.workers, lab.asked.connections,
                        {"APP_RUNTIME": RUNTIME, "APP_SAMOVAR_MODEL": model})
    with Running(servers.samovar_launch(site)) as running:
        shoppers = [shopper.Shopper(site.port, n, lab.asked.seed) for n in range(lab.asked.connections)]
        each = max(1, lab.asked.requests // READINGS // len(shoppers))
        visit(shoppers, each, result)
        result["readings"].append(reading(site, running, shoppers))
        while sent(shoppers) < lab.asked.requests and len(result["faults"]) < FAULTS_MAX:
            visit(shoppers, each, result)
            result["readings"].append(reading(site, running, shoppers))
            lab.progress.note(f"{model}: {sent(shoppers):,} of {lab.asked.requests:,} requests")
        result["status"] = control.status(site.var)
        if result["status"]["workers"][0]["model"] != model:
            raise ValueError(f"the workers' model is {result['status']['workers'][0]['model']}")


def install(lab, model):
    """A copy of the application with tables, users and a compiled container."""
    folder = lab.folder / model / "shop"
    shutil.copytree(SHOP, folder, ignore=shutil.ignore_patterns("var", "tests"))
    names = [shopper.name_of(n) for n in range(lab.asked.connections)]
    done = subprocess.run(["php8.2", "bin/console", "app:install", *names], cwd=folder, capture_output=True, text=True,
                          timeout=INSTALL_SECONDS_MAX, env=servers.outer_environment())
    if done.returncode:
        raise ValueError(f"the shop is not installed: {done.stdout}{done.stderr}")
    return folder


def visit(shoppers, requests, result):
    """Runs all shoppers at once, each with this number of requests."""
    with concurrent.futures.ThreadPoolExecutor(len(shoppers)) as pool:
        runs = [pool.submit(one.run, requests) for one in shoppers]
    # The state after a fault is unknown: continues without its shopper.
    for one, run in zip(list(shoppers), runs):
        error = run.exception()
        if error is not None:
            result["faults"].append(str(error) or repr(error))
            shoppers.remove(one)
    if not shoppers:
        raise ValueError(f"every visitor saw a fault, for example: {result['faults'][0]}")


def sent(shoppers):
    return sum(one.sent for one in shoppers)


def reading(site, running, shoppers):
    """Resources that the server and its workers hold while no request is in flight."""
    return control.reading(site.var, running.roots(), sent(shoppers), IMAGE_FIGURES)


def table(raw):
    head = ["model", "requests", "PSS of all, MiB", "a worker's PSS, MiB", "USS, MiB", "descriptors", "mappings"]
    lines = [line for model, result in raw["results"].items() for line in lines_of(model, result)]
    words = [words_of(model, result) for model, result in raw["results"].items()]
    return "\n\n".join([scenario.heading(raw, "A day in the shop"), "\n".join(words), report.table(head, lines)])


def words_of(model, result):
    if result["error"]:
        return f"- {model}: {scenario.error_of(result)}"
    faults = "no wrong response, no mixed-up session"
    if result["faults"]:
        faults = f"**{len(result['faults'])} wrong responses**: " + "; ".join(fault[:300] for fault in result["faults"])
    count = result["readings"][-1]["requests"]
    restarts = result["status"]["worker_restarts_total"]
    return f"- {model}: {count:,} requests, {faults}; {restarts} restarts; {growth.verdict(result['readings'])}"


def lines_of(model, result):
    for r in growth.shown(result["readings"]):
        mean = functools.partial(growth.per_worker, r)
        yield [model, f"{r['requests']:,}", report.mebibytes(r["tree"]["pss_kib"]), report.mebibytes(mean("pss_kib")),
               report.mebibytes(mean("uss_kib")), report.number(mean("descriptors")), report.number(mean("mappings"))]


if __name__ == "__main__":
    main()
