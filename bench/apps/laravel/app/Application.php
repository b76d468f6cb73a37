<?php

declare(strict_types=1);

namespace App;

use Illuminate\Foundation;

/** Keeps the framework's cache next to its storage: each server has its own folder. */
final class Application extends Foundation\Application
{
    public function bootstrapPath($path = ''): string
    {
        return $this->storagePath() . '/bootstrap' . ($path === '' ? '' : "/$path");
    }
}
