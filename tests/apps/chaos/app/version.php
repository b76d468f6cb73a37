<?php

declare(strict_types=1);

// A deployment writes another number here.
namespace Chaos;

const VERSION = 0;
