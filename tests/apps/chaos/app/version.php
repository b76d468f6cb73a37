<?php

declare(strict_types=1);

// A deploy puts another number here.
namespace Chaos;

const VERSION = 0;
