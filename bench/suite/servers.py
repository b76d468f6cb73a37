"""The compared servers: the workload entry that each runs, whether it is installed, and how it is started."""

import dataclasses
import os
import pathlib
import shutil

from . import nginx, peers, scratch
from .launch import Launch

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "target/release"
# Returns "Hello, World!" and nothing else.
BARE_WORKLOADS = ("hello", "hello-varying")
INSTALL_FPM = "apt-get install nginx-light php8.2-fpm"
# The same for every PHP here: a folder with this file is read after each one's own php.ini
# (PHP_INI_SCAN_DIR). Timestamps are checked, which is the default of PHP and Debian.
PHP_SETTINGS = {
    "opcache.enable": "1",
    "opcache.enable_cli": "1",
    "opcache.memory_consumption": "128",
    "opcache.max_accelerated_files": "10000",
    "opcache.validate_timestamps": "1",
    "opcache.revalidate_freq": "2",
    "opcache.jit": "disable",
    "display_errors": "0",
    "log_errors": "1",
    "memory_limit": "256M",
    "post_max_size": "64M",
    "upload_max_filesize": "64M",
    "session.gc_probability": "0",
}


@dataclasses.dataclass(frozen=True)
class Site:
    """Parameters of a server for one workload."""

    workload: str
    entry: pathlib.Path | None
    var: pathlib.Path
    port: int
    workers: int
    connections_max: int
    environment: dict


@dataclasses.dataclass(frozen=True)
class Kind:
    """A server that may take part."""

    key: str
    title: str
    entry: str | None     # The key in a workload's [entries]; None: it needs no file.
    group: str            # samovar, php-fpm, limit or peer: determines its treatment in the report.
    install: str
    version: str | None   # None: not installed.
    launch: object        # Site -> Launch; None: the loop without a server.
    note: str = ""

    def takes_part(self, workload):
        if self.entry is None:
            return workload.name in BARE_WORKLOADS
        return self.entry in workload.entries


def php_ini(var):
    """Text of the settings, with each server's own folders."""
    # A log, too, because php-fpm's children have no stderr.
    own = {"session.save_path": scratch.sessions(var),
           "upload_tmp_dir": f"{var}/uploads", "error_log": f"{var}/php.log"}
    return "".join(f"{key} = {value}\n" for key, value in {**PHP_SETTINGS, **own}.items())


def prepare(site):
    """Creates the server's folders; returns the environment of its processes."""
    for folder in (scratch.sessions(site.var), *(site.var / below for below in ("uploads", "nginx", "ini", "app"))):
        folder.mkdir(parents=True, exist_ok=True)
    (site.var / "ini/99-bench.ini").write_text(php_ini(site.var))
    return {**outer_environment(), **site.environment, "PHP_INI_SCAN_DIR": f":{site.var / 'ini'}",
            "BENCH_VAR": str(site.var / "app"), "BENCH_WORKERS": str(site.workers)}


def outer_environment():
    """The suite's own environment, without variables that would change a server's settings unnoticed."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("SAMOVAR_", "PHP_"))}


def samovar_binary():
    return os.environ.get("SAMOVAR_BIN", str(TARGET / "samovar"))


def samovar_launch(site):
    command = (samovar_binary(), "serve", site.entry, "--listen", f"127.0.0.1:{site.port}",
               "--workers", site.workers, "--control", site.var / "control.sock",
               *(("--allow-root",) if os.geteuid() == 0 else ()))
    return Launch((command,), site.port, site.var, prepare(site))


def fpm_launch(site, children, kept_connections=0):
    files = {site.var / "fpm.conf": nginx.fpm_text(site.var, children),
             site.var / "nginx.conf": nginx.nginx_text(site.var, site.port, site.entry, kept_connections)}
    # -R allows it to run as root, as all servers here may.
    commands = (("php-fpm8.2", "-R", "-F", "-O", "-y", site.var / "fpm.conf"),
                ("nginx", "-p", site.var, "-c", site.var / "nginx.conf", "-e", "stderr"))
    return Launch(commands, site.port, site.var, prepare(site), files, (site.var / "fpm.sock",))


def keep_alive_children(site):
    """A child serves its open connection only, so each connection that nginx may open needs a child of its own. Each of
    nginx's workers may keep as many as there are clients."""
    return max(site.workers, site.connections_max * nginx.workers())


def bare_launch(site):
    command = (TARGET / "examples/bare_hello", f"127.0.0.1:{site.port}")
    return Launch((command,), site.port, site.var, outer_environment())


def peer_launch(peer, site):
    values = {"entry": site.entry, "port": site.port, "workers": site.workers, "var": site.var / "app", "root": ROOT}
    files = {pathlib.Path(peers.fill(path, values)): peers.fill(text, values) for path, text in peer.files}
    command = tuple(peers.fill(part, values) for part in peer.start)
    environment = {key: peers.fill(value, values) for key, value in peer.environment.items()}
    return Launch((command,), site.port, site.var, {**prepare(site), **environment}, files, stop=peer.stop,
                  working_directory=site.entry.parent)


def own_kinds(version_of):
    """Samovar's models, php-fpm and the limits. version_of returns a program's version, or None."""
    samovar = version_of("samovar")
    fpm = version_of("php-fpm") if shutil.which("nginx") else None
    fpm_text = f"php-fpm {fpm}, nginx {version_of('nginx')}" if fpm else None
    bare = "hyper, from this repository" if (TARGET / "examples/bare_hello").exists() else None
    build = "make build"
    return [
        Kind("samovar-native", "Samovar, resident, native request", "native", "samovar", build, samovar,
             samovar_launch),
        Kind("samovar-resident", "Samovar, resident", "resident", "samovar", build, samovar, samovar_launch),
        Kind("samovar-checkpoint", "Samovar, checkpoint", "checkpoint", "samovar", build, samovar, samovar_launch),
        Kind("samovar-script", "Samovar, script", "fpm", "samovar", build, samovar, samovar_launch),
        Kind("php-fpm", "nginx + php-fpm", "fpm", "php-fpm", INSTALL_FPM, fpm_text,
             lambda site: fpm_launch(site, site.workers)),
        Kind("php-fpm-keepalive", "nginx + php-fpm, FastCGI keep-alive, a child per connection", "fpm", "php-fpm",
             INSTALL_FPM, fpm_text, lambda site: fpm_launch(site, keep_alive_children(site), site.connections_max),
             "a child serves only its own connection, so this server has more PHP processes than the others"),
        Kind("alone", "PHP alone, no server", "alone", "limit", "apt-get install php8.2-cli", version_of("php"), None,
             "the handler in a loop of php8.2: the limit of PHP"),
        Kind("bare-hyper", "bare hyper, no PHP", None, "limit",
             "cargo build --release -p samovar-front --example bare_hello", bare, bare_launch,
             "a hello world of hyper alone: the limit of the front"),
    ]


def peer_kinds(found):
    """The peers as kinds, with their versions."""
    def kind(peer):
        return Kind(peer.key, peer.name, peer.entry, "peer", peer.install, peers.version(peer),
                    lambda site: peer_launch(peer, site), peer.homepage)
    return [kind(peer) for peer in found.values()]
