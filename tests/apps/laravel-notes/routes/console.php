<?php

declare(strict_types=1);

use App\Models\Note;
use App\Models\User;
use Illuminate\Support\Facades\Artisan;
use Illuminate\Support\Facades\DB;

Artisan::command('notes:count', function (): void {
    $this->line(sprintf('%d users, %d notes, %d jobs', User::count(), Note::count(), DB::table('jobs')->count()));
})->purpose('Say how many users, notes and waiting jobs there are');
