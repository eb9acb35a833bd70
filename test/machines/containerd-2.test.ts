import { machineTests } from './machine-tests.ts';

machineTests('2');
