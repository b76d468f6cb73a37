<?php

declare(strict_types=1);

use App\Http\Controllers\AuthController;
use App\Http\Controllers\HomeController;
use App\Http\Controllers\NoteController;
use App\Http\Controllers\OutputController;
use App\Http\Controllers\StateController;
use Illuminate\Support\Facades\Route;

Route::get('/', [HomeController::class, 'index'])->name('home');
Route::get('/locale/{locale}', [HomeController::class, 'locale'])->where('locale', 'en|de')->name('locale');
Route::get('/whoami', [HomeController::class, 'whoami'])->name('whoami');
Route::get('/signed', [HomeController::class, 'sign']);
Route::get('/opened', [HomeController::class, 'opened'])->middleware('signed:relative')->name('opened');
Route::redirect('/old', '/whoami', 301);

Route::get('/register', [AuthController::class, 'registration'])->name('register');
Route::post('/register', [AuthController::class, 'register']);
Route::get('/login', [AuthController::class, 'form'])->name('login');
Route::post('/login', [AuthController::class, 'login']);
Route::post('/logout', [AuthController::class, 'logout'])->name('logout');

Route::middleware('auth')->group(static function (): void {
    Route::get('/notes', [NoteController::class, 'index'])->name('notes');
    Route::post('/notes', [NoteController::class, 'store']);
    Route::middleware('can:touch,note')->group(static function (): void {
        Route::get('/notes/{note}', [NoteController::class, 'show'])->name('note');
        Route::put('/notes/{note}', [NoteController::class, 'update']);
        Route::delete('/notes/{note}', [NoteController::class, 'destroy']);
        Route::get('/notes/{note}/attachment', [NoteController::class, 'attachment'])->name('attachment');
    });
});

Route::get('/stream', [OutputController::class, 'stream']);
Route::get('/stream-download', [OutputController::class, 'streamDownload']);
Route::get('/download', [OutputController::class, 'download']);
Route::get('/cached', [OutputController::class, 'cached'])->middleware('cache.headers:public;max_age=60;etag');
Route::get('/echo', [OutputController::class, 'echo']);
Route::get('/boom', [OutputController::class, 'boom']);
Route::get('/tea', [OutputController::class, 'tea']);
Route::get('/abort/{status}', [OutputController::class, 'abort'])->whereNumber('status');
Route::get('/dd', [OutputController::class, 'dd']);
Route::get('/exit', [OutputController::class, 'exit']);
Route::get('/fatal', [OutputController::class, 'fatal']);
Route::get('/warning', [OutputController::class, 'warning']);

Route::get('/exit-in-transaction', [StateController::class, 'exitInTransaction']);
Route::get('/state', [StateController::class, 'show']);
Route::get('/state/soil', [StateController::class, 'soil']);
