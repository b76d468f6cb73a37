<?php

declare(strict_types=1);

use App\Http\Controllers\ApiController;
use Illuminate\Support\Facades\Route;

Route::any('/echo', [ApiController::class, 'echo']);
Route::post('/sum', [ApiController::class, 'sum']);
Route::get('/limited', [ApiController::class, 'limited'])->middleware('throttle:3,1');
