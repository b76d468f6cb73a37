<?php

declare(strict_types=1);

/*
 * opcache.preload: compiles the files that collect.php has listed. opcache links the classes when
 * all of them are present.
 */

(static function (): void {
    $list = file_get_contents(getenv('BENCH_VAR') . '/preload.json');
    foreach (json_decode($list, true, 4, JSON_THROW_ON_ERROR) as $file) {
        opcache_compile_file($file);
    }
})();
