<?php

declare(strict_types=1);

namespace Samovar\Bench\Bootstrap;

/** Where setup.php writes the classes, and where the application loads them from. */
function generatedFolder(): string
{
    return (getenv('BENCH_VAR') ?: sys_get_temp_dir() . '/samovar-bench') . '/generated';
}
