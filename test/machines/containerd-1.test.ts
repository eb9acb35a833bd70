import { machineTests } from './machine-tests.ts';

machineTests('1.7');
