<?php

declare(strict_types=1);

// What a build does before a deploy: the container and the templates are compiled, by showing the page once.

use App\Kernel;

use function Samovar\Bench\Deploy\answer;

require __DIR__ . '/release.php';

answer(new Kernel('prod', false), require __DIR__ . '/name.php');
