<?php

/** Serves the pages of app/ with one handler. */

declare(strict_types=1);

require dirname(__DIR__) . '/version.php';
require dirname(__DIR__) . '/pages.php';

Samovar\serve(static function (): void {
    Chaos\answer();
});
