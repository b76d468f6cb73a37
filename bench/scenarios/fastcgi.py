#!/usr/bin/python3
"""Cost of a page over FastCGI: Samovar behind nginx, in place of php-fpm.

  bench/scenarios/fastcgi.py [--rounds 7] [--workloads symfony,hello] [--output DIR]

Compares php-fpm and Samovar behind the same nginx: Samovar after a checkpoint and with whole
scripts; with a new connection for each request, as php-fpm has it, and with kept connections. CPU is
that of all processes, including nginx.
"""

import dataclasses
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import nginx, report, scenario, servers  # noqa: E402: the suite is next to this folder

WORKLOADS = ("symfony", "hello")
COLUMNS = ["server", "CPU µs/request (min–max)", "CPU × php-fpm", "requests/s", "p50 ms", "p99 ms", "p99 × php-fpm",
           "errors"]
KEPT_CONNECTIONS = 16


def main():
    scenario.run_on_workloads("fastcgi", __doc__, WORKLOADS, measure_all, table)


def measure_all(lab, results):
    kinds = [scenario.php_fpm(), behind("checkpoint", "nginx + Samovar, checkpoint", "checkpoint"),
             behind("kept", "the same, keep-alive connections", "checkpoint", KEPT_CONNECTIONS),
             behind("script", "nginx + Samovar, script", "fpm")]
    for name in lab.asked.workloads.split(","):
        lab.contest(scenario.workload(scenario.APPS / name), [kind for kind in kinds if kind], results)


def behind(key, title, entry, kept_connections=0):
    """Samovar at the socket that is in nginx's configuration for php-fpm."""
    def launch(site):
        made = servers.samovar_launch(site)
        program = ["fcgi-unix:" + str(site.var / "fpm.sock") if part == f"127.0.0.1:{site.port}" else part
                   for part in made.commands[0]]
        config = site.var / "nginx.conf"
        files = {**made.files, config: nginx.nginx_text(site.var, site.port, site.entry, kept_connections)}
        commands = (tuple(program), ("nginx", "-p", site.var, "-c", config, "-e", "stderr"))
        return dataclasses.replace(made, commands=commands, files=files, sockets=(site.var / "fpm.sock",))
    return servers.Kind(key, title, entry, "samovar", "make build", "here", launch)


def table(raw):
    return "\n\n".join(scenario.sections(raw, "FastCGI behind nginx", workload_table))


def workload_table(record):
    base = record["servers"].get("php-fpm")
    return report.table(COLUMNS, [scenario.row_beside(record, key, server, base)
                                  for key, server in record["servers"].items()])


if __name__ == "__main__":
    main()
