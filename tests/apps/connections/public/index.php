<?php

/**
 * Visits on a connection that was opened above the checkpoint. A visit is a list of operations, each
 * a method of the connection's class and its arguments; the response is the list of their results.
 *
 *     /cases              all cases of this driver, with the boot that they need
 *     /case?name=&visitor= operations of ann, of bob, or of both in one visit
 *     /draw?seed=         random visits
 *     /restore            restores the permanent data
 *     /leave              ends the worker
 *     POST /              runs the operations in the body
 */

declare(strict_types=1);

use Connections\Application;

spl_autoload_register(static function (string $class): void {
    require __DIR__ . '/../src/' . substr($class, strlen('Connections\\')) . '.php';
});

$application = new Application(getenv('DRIVER'), getenv('BOOT'), getenv('DATABASE'));
if (getenv('MODEL') === 'rollback') {
    Samovar\serve($application->respond(...), rollbackEvery: 1);
    exit;
}
Samovar\checkpoint();
$application->respond();
