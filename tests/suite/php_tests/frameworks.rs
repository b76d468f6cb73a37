//! Suites of other projects, from Debian's packages, and suites that boot a framework.

use super::fixtures::{Project, junit};
use samovar_testkit::workspace;

/// Adapters that run the integration tests of PSR-7 (Debian's `php-http-psr7-integration-tests`)
/// with the messages of nyholm/psr7.
const PSR7: [(&str, &str); 5] = [
    ("Request", "createSubject() { return new Nyholm\\Psr7\\Request('GET', '/'); }"),
    ("Response", "createSubject() { return new Nyholm\\Psr7\\Response(); }"),
    (
        "ServerRequest",
        "createSubject() {
            return new Nyholm\\Psr7\\ServerRequest('GET', '/', [], null, '1.1', $_SERVER);
        }",
    ),
    ("Stream", "createStream($data) { return Nyholm\\Psr7\\Stream::create($data); }"),
    ("Uri", "createUri($uri) { return new Nyholm\\Psr7\\Uri($uri); }"),
];

#[test]
fn integration_tests_of_psr7_have_the_results_of_phpunit() {
    let files: Vec<(String, String)> = PSR7
        .iter()
        .map(|(name, method)| {
            (
                format!("tests/{name}Test.php"),
                format!(
                    "<?php final class {name}Test extends Http\\Psr7Test\\{name}IntegrationTest
                    {{ public function {method} }}"
                ),
            )
        })
        .chain([(
            "tests/bootstrap.php".to_owned(),
            "<?php define('STREAM_FACTORY', Nyholm\\Psr7\\Factory\\Psr17Factory::class);
            define('URI_FACTORY', Nyholm\\Psr7\\Factory\\Psr17Factory::class);
            foreach (['Nyholm/Psr7', 'Http/Psr7Test', 'Psr/Http/Message'] as $library) {
                require_once '/usr/share/php/' . $library . '/autoload.php';
            }"
            .to_owned(),
        )])
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
    same(&Project::new(&files), &[], 50);
}

#[test]
fn functional_tests_of_symfony_have_the_results_of_phpunit() {
    let app = workspace().join("examples/symfony");
    let bootstrap = format!(
        "<?php
        use Symfony\\Bundle\\FrameworkBundle\\Kernel\\MicroKernelTrait;
        use Symfony\\Component\\Config\\Loader\\LoaderInterface;
        use Symfony\\Component\\HttpFoundation\\Request;
        foreach (['APP_CACHE_DIR' => '/../cache', 'APP_LOG_DIR' => '/../log'] as $name => $value) {{
            $_SERVER[$name] = $_ENV[$name] = __DIR__ . $value;
            putenv(\"$name=$_SERVER[$name]\");
        }}
        require '{app}/autoload.php';
        final class TestKernel extends Symfony\\Component\\HttpKernel\\Kernel
        {{
            use MicroKernelTrait {{ registerContainerConfiguration as own; }}
            public function getProjectDir(): string {{ return '{app}'; }}
            public function registerContainerConfiguration(LoaderInterface $loader): void
            {{
                $this->own($loader);
                $loader->load(static function ($container) {{
                    $session = ['storage_factory_id' => 'session.storage.factory.mock_file'];
                    $settings = ['test' => true, 'session' => $session];
                    $container->loadFromExtension('framework', $settings);
                }});
            }}
        }}
        abstract class FunctionalTestCase extends PHPUnit\\Framework\\TestCase
        {{
            protected function status(string $path): int
            {{
                $kernel = new TestKernel('test', false);
                $response = $kernel->handle(Request::create($path));
                $kernel->shutdown();
                return $response->getStatusCode();
            }}
        }}",
        app = app.display()
    );
    let page = |class: &str, path: &str, status: u32| {
        let methods: Vec<String> = (0..5)
            .map(|n| {
                format!(
                    "public function testPage{n}(): void
                    {{ self::assertSame({status}, $this->status('{path}{n}')); }}\n"
                )
            })
            .collect();
        format!("<?php final class {class} extends FunctionalTestCase {{ {} }}", methods.concat())
    };
    let boot =
        "<?php $kernel = new TestKernel('test', false); $kernel->boot(); $kernel->shutdown();";
    let project = Project::new(&[
        ("tests/bootstrap.php", &bootstrap),
        ("tests/HomeTest.php", &page("HomeTest", "/?name=", 200)),
        ("tests/MissingTest.php", &page("MissingTest", "/missing", 404)),
        ("tests/WrongTest.php", &page("WrongTest", "/", 200)),
        ("boot.php", boot),
    ]);
    same(&project, &["--boot", "boot.php"], 15);
}

#[test]
fn feature_tests_of_laravel_have_the_results_of_phpunit() {
    let app = workspace().join("tests/apps/laravel-notes");
    let autoload = "/usr/share/php/Illuminate/Foundation/Testing/TestCase.php";
    assert!(std::path::Path::new(autoload).exists(), "Debian's Laravel has its test case");
    let bootstrap = format!(
        "<?php
        require_once '{app}/bootstrap/autoload.php';
        abstract class FeatureTestCase extends PHPUnit\\Framework\\TestCase
        {{
            protected function status(string $path): int
            {{
                $app = require '{app}/bootstrap/app.php';
                $app->useStoragePath(__DIR__ . '/../storage');
                $kernel = $app->make(Illuminate\\Contracts\\Http\\Kernel::class);
                $response = $kernel->handle(Illuminate\\Http\\Request::create($path));
                return $response->getStatusCode();
            }}
        }}",
        app = app.display()
    );
    let methods: Vec<String> = ["/", "/login", "/missing"]
        .iter()
        .enumerate()
        .map(|(n, path)| {
            format!(
                "public function testPage{n}(): void
                {{ self::assertLessThan(600, $this->status('{path}')); }}\n"
            )
        })
        .collect();
    let text = |class: &str| {
        format!("<?php final class {class} extends FeatureTestCase {{ {} }}", methods.concat())
    };
    let project = Project::new(&[
        ("tests/bootstrap.php", &bootstrap),
        ("tests/OneTest.php", &text("OneTest")),
        ("tests/TwoTest.php", &text("TwoTest")),
    ]);
    for folder in ["storage/framework/views", "storage/framework/sessions", "storage/logs"] {
        std::fs::create_dir_all(project.path(folder)).expect("our folder");
    }
    same(&project, &[], 6);
}

/// Compares both runs, which have at least this many tests.
fn same(project: &Project, flags: &[&str], tests_min: usize) {
    let (expected, found) = (project.phpunit(&[]), project.test(flags));
    let expected_results = junit(&expected.log);
    assert!(expected_results.len() >= tests_min, "{}", expected.text);
    assert_eq!(junit(&found.log), expected_results, "{}", found.text);
    assert_eq!(found.status, expected.status, "{}", found.text);
}
