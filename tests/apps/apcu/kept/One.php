<?php

declare(strict_types=1);

namespace Kept;

final class One
{
}
