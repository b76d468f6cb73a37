<?php

declare(strict_types=1);

/* A PSR-15 handler that prints its request, under Psr15\serve(). */

require dirname(__DIR__) . '/libraries.php';

use Samovar\Runtime\Tests\Handler;

Samovar\Runtime\Psr15\serve(new Handler(), (int) ($_SERVER['ROLLBACK_EVERY'] ?? 0));
