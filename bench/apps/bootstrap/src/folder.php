<?php

declare(strict_types=1);

namespace Samovar\Bench\Bootstrap;

/** Folder to which setup.php writes the classes, and from which the application loads them. */
function generatedFolder(): string
{
    return (getenv('BENCH_VAR') ?: sys_get_temp_dir() . '/samovar-bench') . '/generated';
}
