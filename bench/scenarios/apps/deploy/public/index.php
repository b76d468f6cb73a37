<?php

declare(strict_types=1);

use App\Kernel;

use function Samovar\Bench\Deploy\answer;

require dirname(__DIR__) . '/release.php';

answer(new Kernel('prod', false), require dirname(__DIR__) . '/name.php');
