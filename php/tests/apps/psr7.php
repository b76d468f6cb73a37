<?php

declare(strict_types=1);

/* Runs php-http's tests on the request that it is asked with. Answers how many there were, or what has failed. */

require dirname(__DIR__) . '/libraries.php';
require_once 'Http/Psr7Test/autoload.php';

use PHPUnit\Framework\TestSuite;
use Samovar\Request;
use Samovar\Runtime\Psr17\Factory;
use Samovar\Runtime\Tests\Psr7\ReceivedRequestIntegrationTest;
use Samovar\Runtime\Tests\Psr7\ReceivedServerRequestIntegrationTest;

foreach (['STREAM', 'UPLOADED_FILE', 'URI'] as $made) {
    define("{$made}_FACTORY", Factory::class);
}

Samovar\serve(static function (Request $request): string {
    ReceivedRequestIntegrationTest::$native = $request;
    ReceivedServerRequestIntegrationTest::$native = $request;
    $suite = new TestSuite();
    $suite->addTestSuite(ReceivedRequestIntegrationTest::class);
    $suite->addTestSuite(ReceivedServerRequestIntegrationTest::class);
    $result = $suite->run();
    $text = $result->wasSuccessful() ? "{$result->count()} tests" : '';
    foreach ([...$result->failures(), ...$result->errors()] as $failure) {
        $text .= "{$failure->getTestName()}: {$failure->exceptionMessage()}\n";
    }

    return $text;
});
