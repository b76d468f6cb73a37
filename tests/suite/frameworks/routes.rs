//! Route names of frameworks: the adapters report them to the server, without code in the
//! application.

use crate::frameworks::laravel::{Copy, OCTANE, RUNTIME};
use crate::frameworks::shop::{Model, Shop};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, eventually, workspace};
use serde_json::Value;
use std::net::SocketAddr;

const ADMIN: &str = "admin = '127.0.0.1:0'\n";

/// Requests each path, and checks that the requests are counted under these names, each once.
fn are_named(server: &Server, pages: &[(&str, &str)]) {
    for (path, _) in pages {
        assert!(server.get(path).status < 500, "{path}\n{}", server.log());
    }
    let admin = server.status()["admin"][0].as_str().expect("an address").to_owned();
    let admin: SocketAddr = admin.parse().expect("an address");
    let routes = || Client::connect(admin).request(&Request::get("/api/routes")).text();
    eventually(&format!("{pages:?} are told apart"), || {
        let all = routes();
        let all: Value = serde_json::from_str(&all).ok()?;
        let all = all.as_array()?;
        let is_counted = |name: &str| {
            all.iter()
                .any(|one| one["route"] == name && one["costs"]["requests"].as_u64() >= Some(1))
        };
        pages.iter().all(|(_, name)| is_counted(name)).then_some(())
    });
}

#[test]
fn symfony_adapter_reports_route_names() {
    for model in [Model::Resident, Model::Checkpoint] {
        let shop = Shop::install(None);
        let server = shop.serve_with(model, ADMIN);
        are_named(
            &server,
            &[("/products", "products"), ("/products/2", "product"), ("/no/such", "(not found)")],
        );
        server.stop();
    }
}

#[test]
fn laravel_adapters_report_route_names_or_patterns() {
    for way in [&RUNTIME, &OCTANE] {
        let copy = Copy::new("file");
        let server = copy.serve_with(way, ADMIN);
        are_named(&server, &[("/", "home"), ("/api/echo", "api/echo")]);
        server.stop();
    }
}

/// Three routers, each with the middleware as in its guide.
const PSR15: &str = r"<?php
require 'PACKAGE/tests/libraries.php';

use Nyholm\Psr7\Response;
use Psr\Http\Message\{ResponseInterface, ServerRequestInterface};
use Psr\Http\Server\RequestHandlerInterface;
use Samovar\Runtime\Psr15\NamesRoute;

$slim = new class () {
    public function getName(): ?string { return null; }
    public function getPattern(): string { return '/tea/{id}'; }
};
$mezzio = new class () {
    public function getMatchedRoute(): object {
        return new class () { public function getName(): string { return 'mezzio.tea'; } };
    }
};
$found = [
    '/slim/7' => ['__route__', $slim],
    '/mezzio' => ['Mezzio\Router\RouteResult', $mezzio],
    '/text' => ['_route', 'text.tea'],
];
$page = new class () implements RequestHandlerInterface {
    public function handle(ServerRequestInterface $request): ResponseInterface {
        return new Response(body: 'tea'); }
};
$router = new class ($page, $found) implements RequestHandlerInterface {
    public function __construct(private RequestHandlerInterface $page, private array $found) {}
    public function handle(ServerRequestInterface $request): ResponseInterface {
        [$name, $value] = $this->found[$request->getUri()->getPath()] ?? ['none', null];
        return (new NamesRoute())->process($request->withAttribute($name, $value), $this->page);
    }
};
Samovar\Runtime\Psr15\serve($router);
";

#[test]
fn psr_15_middleware_reports_route_names_of_routers() {
    let package = workspace().join("php");
    let script = PSR15.replace("PACKAGE", &package.display().to_string());
    let server = Server::script(&script).workers(1).config(ADMIN).start();
    are_named(
        &server,
        &[
            ("/slim/7", "/tea/{id}"),
            ("/mezzio", "mezzio.tea"),
            ("/text", "text.tea"),
            ("/unknown", "index.php /unknown"),
        ],
    );
    server.stop();
}
