<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests;

use PHPUnit\Framework\TestCase;

/**
 * Installs the package with Composer into an application, from its folder and with Debian's PSR-7.
 */
final class ComposerTest extends TestCase
{
    private const LIBRARIES = [
        'nyholm/psr7' => ['1.5.1', 'Nyholm\Psr7'],
        'psr/http-factory' => ['1.0.1', 'Psr\Http\Message'],
        'psr/http-message' => ['1.0.1', 'Psr\Http\Message'],
    ];
    private const APPLICATION = <<<'PHP'
        <?php

        require __DIR__ . '/vendor/autoload.php';

        $factory = Samovar\Runtime\Psr17\Discovery::find(Psr\Http\Message\ResponseFactoryInterface::class);
        Samovar\warmup(fn () => null);
        Samovar\serve(fn (Samovar\Request $request) => new Samovar\Response(json_encode([
            'path' => $request->path(),
            'native' => extension_loaded('samovar'),
            'request' => str_starts_with((string) (new ReflectionClass($request))->getFileName(), __DIR__),
            'psr7' => (string) $factory->createResponse(404)->getReasonPhrase(),
            'psr15' => function_exists('Samovar\Runtime\Psr15\serve'),
            'roadrunner' => class_exists('Spiral\RoadRunner\Worker'),
        ])));
        PHP;

    private string $folder;

    protected function setUp(): void
    {
        exec('command -v composer', $found);
        if ($found === []) {
            self::markTestSkipped('composer is not installed');
        }
        $this->folder = sys_get_temp_dir() . '/samovar-composer-' . bin2hex(random_bytes(4));
        mkdir($this->folder);
        // The server may run the application as another user.
        chmod($this->folder, 0755);
    }

    protected function tearDown(): void
    {
        if (isset($this->folder)) {
            exec('rm -rf ' . escapeshellarg($this->folder));
        }
    }

    public function testTheManifestIsValid(): void
    {
        self::assertSame('', $this->composer(
            'validate --strict --no-check-lock ' . escapeshellarg(\dirname(__DIR__) . '/composer.json'),
        ));
    }

    public function testAnApplicationThatRequiresIt(): void
    {
        $this->install();
        $polyfill = [
            'path' => '/tea', 'native' => false, 'request' => true,
            'psr7' => 'Not Found', 'psr15' => true, 'roadrunner' => false,
        ];
        $native = ['native' => true, 'request' => false, 'roadrunner' => true] + $polyfill;

        $builtin = Server::builtin("$this->folder/index.php");
        self::assertSame($polyfill, $builtin->ask('/tea')->json());
        if (Server::samovar() === null) {
            self::markTestSkipped('target/release/samovar was not built, and SAMOVAR_BINARY names none');
        }
        ksort($native);
        $seen = Server::serving("$this->folder/index.php")->ask('/tea')->json();
        ksort($seen);
        self::assertSame($native, $seen);
    }

    private function install(): void
    {
        $repositories = [
            ['packagist.org' => false],
            ['type' => 'path', 'url' => \dirname(__DIR__), 'options' => ['symlink' => false]],
        ];
        // Debian's packages do not contain the manifests.
        foreach (self::LIBRARIES as $name => [$version, $namespace]) {
            $repositories[] = ['type' => 'package', 'package' => [
                'name' => $name,
                'version' => $version,
                'dist' => ['type' => 'path', 'url' => '/usr/share/php/' . strtr($namespace, '\\', '/')],
                'autoload' => ['psr-4' => ["$namespace\\" => '']],
            ]];
        }
        file_put_contents("$this->folder/composer.json", json_encode([
            'repositories' => $repositories,
            'require' => array_map(static fn (): string => '*', self::LIBRARIES) + ['samovar/runtime' => '@dev'],
        ]));
        file_put_contents("$this->folder/index.php", self::APPLICATION);
        self::assertSame('', $this->composer('install --optimize-autoloader'));
        self::assertFileExists("$this->folder/vendor/samovar/runtime/composer.json");
    }

    /** Runs Composer in the application's folder, and returns its error output. */
    private function composer(string $arguments): string
    {
        $folder = escapeshellarg($this->folder);
        $variables = "COMPOSER_ALLOW_SUPERUSER=1 COMPOSER_DISABLE_NETWORK=1 COMPOSER_HOME=$folder/.composer";
        exec("cd $folder && $variables composer --no-interaction --no-ansi $arguments 2>&1", $lines, $status);

        return $status === 0 ? '' : implode("\n", ["status $status", ...$lines]);
    }
}
