<?php

declare(strict_types=1);

namespace App\Exceptions;

use Illuminate\Foundation\Exceptions\Handler as ExceptionHandler;

final class Handler extends ExceptionHandler
{
    protected $dontFlash = ['password', 'password_confirmation'];

    public function register(): void
    {
        $this->renderable(
            static fn (TeaIsOut $thrown) => response()->view('tea', ['left' => $thrown->left], 418),
        );
    }
}
