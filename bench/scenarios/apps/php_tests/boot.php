<?php

declare(strict_types=1);

/* Boots the kernel once for all forks of `samovar test`. */

use Bench\TestKernel;
use Symfony\Component\HttpFoundation\Request;

$kernel = new TestKernel('test', false);
$kernel->handle(Request::create('/'));
$kernel->shutdown();
unset($kernel);
