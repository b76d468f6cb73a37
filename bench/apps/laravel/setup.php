<?php

declare(strict_types=1);

/*
 * The steps of a deploy: creates the server's folders, and the configuration in one file, as
 * "artisan config:cache" leaves it.
 */

use Illuminate\Contracts\Http\Kernel;

$storage = getenv('BENCH_VAR') . '/storage';
$cached = "$storage/bootstrap/cache/config.php";
foreach (['bootstrap/cache', 'framework/sessions', 'framework/views'] as $folder) {
    is_dir("$storage/$folder") || mkdir("$storage/$folder", 0777, true);
}
is_file($cached) && unlink($cached);

$app = require __DIR__ . '/bootstrap/app.php';
$app->make(Kernel::class)->bootstrap();
file_put_contents($cached, '<?php return ' . var_export($app->make('config')->all(), true) . ";\n");
