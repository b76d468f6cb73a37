<?php

declare(strict_types=1);

/*
 * opcache.preload: compiles what collect.php has listed. opcache links the classes when all are there.
 */

(static function (): void {
    $list = file_get_contents(getenv('BENCH_VAR') . '/preload.json');
    foreach (json_decode($list, true, 4, JSON_THROW_ON_ERROR) as $file) {
        opcache_compile_file($file);
    }
})();
