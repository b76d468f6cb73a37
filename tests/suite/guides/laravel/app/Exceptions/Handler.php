<?php

declare(strict_types=1);

namespace App\Exceptions;

use Illuminate\Foundation\Exceptions\Handler as BaseHandler;

final class Handler extends BaseHandler
{
}
