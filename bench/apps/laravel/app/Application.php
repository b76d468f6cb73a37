<?php

declare(strict_types=1);

namespace App;

use Illuminate\Foundation;

/** Keeps what the framework caches beside what it stores: each server has a folder of its own. */
final class Application extends Foundation\Application
{
    public function bootstrapPath($path = ''): string
    {
        return $this->storagePath() . '/bootstrap' . ($path === '' ? '' : "/$path");
    }
}
