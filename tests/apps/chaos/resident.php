<?php

/**
 * The pages of app/ behind one handler.
 */

declare(strict_types=1);

require dirname(__DIR__) . '/version.php';
require dirname(__DIR__) . '/pages.php';

Samovar\serve(static function (): void {
    Chaos\answer();
});
