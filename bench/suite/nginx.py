"""Configuration of nginx + php-fpm, the reference of all comparisons."""

import os

# Without catch_workers_output, as by default: with it a child reports the end of each request to
# its master.
FPM = """[global]
error_log = {var}/fpm.log
daemonize = no
[www]
listen = {var}/fpm.sock
listen.backlog = 1024
pm = static
pm.max_children = {children}
clear_env = no
"""
# As Debian's nginx.conf, without the access log: no server writes one here. Debian has one worker
# per core. With PHP and the client on the same cores, half of them serve more requests (measured on
# two).
NGINX = """{user}daemon off;
worker_processes {workers};
pid {var}/nginx.pid;
events {{ worker_connections 2048; }}
http {{
    include /etc/nginx/mime.types;
    sendfile on;
    tcp_nopush on;
    access_log off;
    keepalive_requests 1000000000;
    client_max_body_size 64m;
    client_body_temp_path {var}/nginx; proxy_temp_path {var}/nginx; fastcgi_temp_path {var}/nginx;
    uwsgi_temp_path {var}/nginx; scgi_temp_path {var}/nginx;
    fastcgi_buffers 16 64k; fastcgi_buffer_size 64k;
    upstream fpm {{
        server unix:{var}/fpm.sock;
{keep_alive}    }}
    server {{
        listen 127.0.0.1:{port} backlog=1024;
        root {root};
        location / {{ try_files $uri /{index}$is_args$args; }}
        location ~ \\.php$ {{
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_pass fpm;
{keep_conn}        }}
    }}
}}
"""


def workers():
    return max(1, (os.cpu_count() or 1) // 2)


def fpm_text(var, children):
    return FPM.format(var=var, children=children)


def nginx_text(var, port, entry, kept_connections):
    """kept_connections: maximum number of open FastCGI connections; 0 for a new one per request."""
    return NGINX.format(
        # Its workers read files written by root, and use root's php-fpm.
        user="user root;\n" if os.geteuid() == 0 else "",
        workers=workers(), var=var, port=port, root=entry.parent, index=entry.name,
        keep_alive=f"        keepalive {kept_connections};\n" if kept_connections else "",
        keep_conn="            fastcgi_keep_conn on;\n" if kept_connections else "")
