<?php

/** Requests that end in every possible way; under php-fpm too. */

declare(strict_types=1);

use Isolation\Ending;
use Isolation\Loud;

require __DIR__ . '/src/Ending.php';
require __DIR__ . '/src/Loud.php';
require __DIR__ . '/src/LastWords.php';
require __DIR__ . '/src/endings.php';

Ending::$held[] = new Loud('boot');
register_shutdown_function(static fn () => Ending::trace('shutdown function of boot'));
$answer = static function (): void {
    $how = $_GET['how'];
    if ($how === 'names') {
        echo json_encode(array_keys(Isolation\endings()));
    } elseif ($how === 'state') {
        echo json_encode(Ending::state());
    } elseif ($how === 'artifacts') {
        echo json_encode(Ending::artifacts());
    } else {
        Ending::soil();
        Ending::open();
        $how === 'endless' ? Isolation\endless() : Isolation\endings()[$how]();
    }
};
if (function_exists('Samovar\serve') && getenv('ISOLATION_MODEL') === 'rollback') {
    Samovar\serve($answer, 1);
} else {
    if (function_exists('Samovar\checkpoint')) {
        Samovar\checkpoint();
    }
    $answer();
}
