<?php

declare(strict_types=1);

/* Runs php-http's tests on the current request. Responds with the number of tests, or with the
 * failures. */

require dirname(__DIR__) . '/libraries.php';
require_once 'Http/Psr7Test/autoload.php';

use Nyholm\Psr7\Factory\Psr17Factory;
use PHPUnit\TextUI\Application;
use PHPUnit\TextUI\Command;
use Samovar\Request;
use Samovar\Runtime\Tests\Psr7\Native;

foreach (['STREAM', 'UPLOADED_FILE', 'URI'] as $made) {
    define("{$made}_FACTORY", Psr17Factory::class);
}

/** Runs PHPUnit in this process and returns its JUnit report. */
function report(string ...$options): SimpleXMLElement
{
    $file = (string) tempnam(sys_get_temp_dir(), 'samovar-junit-');
    $arguments = ['phpunit', '--no-configuration', '--do-not-cache-result', '--log-junit', $file, ...$options];
    ob_start();
    class_exists(Application::class)
        ? (new Application())->run([...$arguments, '--no-output'])
        : (new Command())->run($arguments, false); // PHPUnit 9.
    ob_end_clean();
    $report = (string) file_get_contents($file);
    unlink($file);

    return new SimpleXMLElement($report);
}

Samovar\serve(static function (Request $request): string {
    Native::$request = $request;
    $report = report('--filter', 'Received(Server)?Request', dirname(__DIR__) . '/Psr7');
    $wrong = $report->xpath('//failure | //error') ?: [];

    return $wrong === []
        ? count($report->xpath('//testcase') ?: []) . ' tests'
        : implode("\n", array_map(strval(...), $wrong));
});
