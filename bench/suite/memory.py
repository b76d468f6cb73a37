"""Memory by number of workers: starts each server with 1, 2, 4 … workers, warms it up and weighs it."""

from . import accounting, measure, servers
from .client import ClientError
from .launch import LaunchError, free_port

KEYS = ("samovar-checkpoint", "samovar-resident", "php-fpm")
LOAD_SECONDS = 2
CONNECTIONS_PER_WORKER = 8  # So that each worker has served requests before it is weighed.


def planned_seconds(kinds, workers):
    return sum(1 for kind in kinds if kind.key in KEYS) * len(workers) * (LOAD_SECONDS + 3)


def weigh(workload, kinds, workers_list, folder, environment, progress, points):
    """Appends a point for each server and number of workers: PSS and USS of all its processes."""
    for workers in workers_list:
        for kind in kinds:
            if kind.key not in KEYS or not kind.takes_part(workload):
                continue
            progress.step(f"memory: {kind.key} with {workers} workers", LOAD_SECONDS + 3)
            var = folder / "memory" / f"{kind.key}-{workers}"
            site = servers.Site(workload.name, workload.entry(kind.entry), var, free_port(), workers,
                                CONNECTIONS_PER_WORKER * workers, environment)
            points.append({"server": kind.key, "title": kind.title, "workers": workers,
                           **weigh_one(measure.Contestant(kind, workload, site), workers, progress)})


def weigh_one(contestant, workers, progress):
    try:
        contestant.start()
        contestant.load(LOAD_SECONDS, CONNECTIONS_PER_WORKER * workers)
        return accounting.memory(contestant.running.roots())
    except (LaunchError, ClientError, OSError) as error:
        progress.note(f"{contestant}: {error}")
        return {"error": str(error)}
    finally:
        contestant.stop()
